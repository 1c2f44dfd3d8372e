#include "apps/observers/stats_json.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::observers {
namespace {

namespace fs = std::filesystem;

constexpr char kEpoch[] = "epoch_num", kStep[] = "global_step";
constexpr JsonLimits kLimits{.bytes = size_t{64} << 20, .depth = 4, .values = 10'000'000};

[[noreturn]] void refuse(const std::string& path) {
  throw Error(Fault::data, fmt::format("{}: expected a JSON array of objects with {} and {}, as TensorPack's "
                                       "stats.json; move the file away to start a new one",
                                       path, kEpoch, kStep));
}

uint64_t step_of(const nlohmann::ordered_json& row) { return row.at(kStep).get<uint64_t>(); }

// A row with epoch and step first.
nlohmann::ordered_json row_from(nlohmann::json& row) {
  nlohmann::ordered_json::object_t ordered;  // append: its operator[] is linear in the number of keys
  for (const char* key : {kEpoch, kStep}) ordered.emplace_back(key, row.at(key));
  for (auto& [key, value] : row.items())
    if (key != kEpoch && key != kStep) ordered.emplace_back(key, std::move(value));
  return ordered;
}

nlohmann::ordered_json read_rows(const std::string& path) {
  auto rows = nlohmann::ordered_json::array();
  const fs::file_status status = fs::symlink_status(path);
  if (status.type() == fs::file_type::not_found) return rows;
  DT_CHECK(status.type() == fs::file_type::regular, path,
           ": is a link or no file, which is not written to; move it away");
  const std::string text = read_text(path, kLimits.bytes);
  auto found = parse_json_line<nlohmann::json>(text, kLimits);
  const auto is_row = [](const auto& row) {
    return row.is_object() && row.contains(kEpoch) && row.contains(kStep) && row[kStep].is_number_unsigned();
  };
  if (!found.is_array() || !std::ranges::all_of(found, is_row)) refuse(path);
  for (nlohmann::json& row : found) rows.push_back(row_from(row));
  return rows;
}

}  // namespace

StatsJson::StatsJson(StatsJsonOptions options, std::function<void(const std::string&)> notice)
    : options_(std::move(options)), notice_(std::move(notice)), rows_(std::make_unique<Json>(Json::array())) {}

StatsJson::~StatsJson() = default;

void StatsJson::begun(const Begun& event) {
  open_ = !event.complete;
  if (!open_) return;
  *rows_ = read_rows(options_.path);
  auto& rows = rows_->get_ref<Json::array_t&>();
  if (std::erase_if(rows, [&](const Json& row) { return step_of(row) > event.step; }) > 0) write();
}

void StatsJson::put(const std::vector<MetricValue>& scalars) {
  put_.insert(put_.end(), scalars.begin(), scalars.end());
}

void StatsJson::stepped(const Stepped& event) {
  means_.add(event);
  if (event.step % options_.period == 0) add_row(event.step);
}

void StatsJson::ended(const Ended& event) {
  if (event.outcome != Outcome::stopped && means_.steps() > 0) add_row(event.step);
}

void StatsJson::evaluated(const Evaluated& event) {
  if (!open_) return;
  Json& row = row_of(event.step);
  for (const MetricValue& scalar : tagged(options_.tags, event.result.values)) row[scalar.name] = scalar.value;
  write();
}

void StatsJson::add_row(uint64_t step) {
  Json& row = row_of(step);
  for (const auto& scalars : {means_.take(options_.tags), put_})
    for (const MetricValue& scalar : scalars) row[scalar.name] = scalar.value;
  put_.clear();
  write();
}

// Steps increase, but evaluations may finish late.
StatsJson::Json& StatsJson::row_of(uint64_t step) {
  auto& rows = rows_->get_ref<Json::array_t&>();
  const auto at = std::ranges::find_if(rows, [&](const Json& row) { return step_of(row) >= step; });
  if (at != rows.end() && step_of(*at) == step) return *at;
  return *rows.insert(at, Json{{kEpoch, (step + options_.period - 1) / options_.period}, {kStep, step}});
}

void StatsJson::write() {
  try {
    AtomicFile file(options_.path);
    file.write(rows_->dump(-1, ' ', false, Json::error_handler_t::replace));
    file.commit();
  } catch (const Error& error) {
    if (!std::exchange(told_, true)) notice_(fmt::format("{}; the run goes on", error.what()));
  }
}

}  // namespace dtrain::observers
