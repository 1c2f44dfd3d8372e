#include "apps/observers/event_files.h"

#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

using Settings = std::map<std::string, std::string>;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// TensorBoard plots numeric hyperparameters on axes.
HyperParameter hyper_parameter(const std::string& text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size() && std::isfinite(number)) return number;
  return text;
}

void add_rows(std::string& table, const Settings& settings) {
  for (const auto& [key, value] : settings) {
    std::string cell = value;
    for (size_t at = 0; (at = cell.find('|', at)) != cell.npos; at += 2) cell.insert(at, "\\");
    table += fmt::format("| {} | {} |\n", key, cell);
  }
}

std::string table_of(const std::vector<std::string>& class_names) {
  Settings rows;
  for (size_t i = 0; i < class_names.size(); ++i)
    if (!class_names[i].empty()) rows[fmt::format("{:>7}", i)] = class_names[i];
  std::string table = "| class | name |\n|---|---|\n";
  add_rows(table, rows);
  return table;
}

Summary summary_of(const Begun& event, const std::vector<std::string>& class_names) {
  std::string table = "| setting | value |\n|---|---|\n";
  HyperParameters parameters;
  for (const Settings* settings : {&event.identity, &event.settings}) {
    add_rows(table, *settings);
    for (const auto& [key, value] : *settings) parameters.emplace(key, hyper_parameter(value));
  }
  Summary summary;
  summary.text("configuration", table);
  if (!class_names.empty()) summary.text("classes", table_of(class_names));
  summary.session_start(parameters, now());
  return summary;
}

}  // namespace

void EventFiles::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    notice_(fmt::format("{}; the run goes on without TensorBoard's events", error.what()));
    file_.reset();
  }
}

void EventFiles::write(uint64_t step, const Summary& summary) {
  if (file_ && !summary.empty()) attempt([&] { file_->add(step, now(), summary); });
}

void EventFiles::begun(const Begun& event) {
  if (event.complete) return;
  const auto first_step = options_.trains ? std::optional(event.step + 1) : std::nullopt;
  attempt([&] { file_.emplace(options_.file, first_step, now()); });
  if (options_.trains) write(event.step, summary_of(event, options_.class_names));
}

void EventFiles::put(uint64_t step, const std::vector<MetricValue>& scalars) {
  Summary summary;
  for (const MetricValue& scalar : scalars) summary.scalar(scalar.name, scalar.value);
  write(step, summary);
}

void EventFiles::stepped(const Stepped& event) {
  if (event.shown) l2_loss_ = event.l2_loss;
  const double loss_scale = loss_scale_.value_or(event.loss_scale);
  loss_scale_ = event.loss_scale;
  if (!file_) return;
  Summary summary;
  if (options_.every > 0 ? event.step % options_.every == 0 : event.shown)
    for (const MetricValue& scalar : scalars_of(event, l2_loss_, options_.tags))
      summary.scalar(scalar.name, scalar.value);
  if (options_.details && options_.details_every > 0 && event.step % options_.details_every == 0)
    options_.details(event, loss_scale, summary);
  write(event.step, summary);
}

void EventFiles::evaluated(const Evaluated& event) {
  put(event.step, tagged(options_.evaluation_tags, event.result.values));
}

// Steps before a checkpoint are never repeated.
void EventFiles::saved(const Saved&) {
  if (file_) attempt([&] { file_->flush(); });
}

// A run stopped on request is not complete: it will be resumed.
void EventFiles::ended(const Ended& event) {
  Summary summary;
  if (options_.trains && event.outcome != Outcome::stopped) summary.session_success(now());
  write(event.step, summary);
  if (file_) attempt([&] { file_->flush(); });
}

}  // namespace dtrain::observers
