#include "apps/report/sections.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "apps/cli/html.h"
#include "apps/report/chart.h"
#include "apps/report/log_events.h"

namespace dtrain::report {
namespace {

using cli::html_text;

double last_of(const RunData& run, const std::string& name) {
  const auto found = run.curves.find(name);
  return found == run.curves.end() || found->second.empty() ? std::nan("") : found->second.back().value;
}

double last_step(const RunData& run) {
  double step = run.checkpoints.empty() ? 0 : static_cast<double>(run.checkpoints.back().step);
  for (const auto& [name, points] : run.curves)
    if (!points.empty()) step = std::max(step, points.back().step);
  return step;
}

std::string count_of(const RunData& run, std::initializer_list<EventKind> kinds) {
  return fmt::to_string(std::ranges::count_if(
      run.events, [&](const LogEvent& event) { return std::ranges::find(kinds, event.kind) != kinds.end(); }));
}

// By the last event of the log.
std::string outcome_of(const RunData& run) {
  for (auto event = run.events.rbegin(); event != run.events.rend(); ++event) {
    if (event->kind == EventKind::end) return "finished";
    if (event->kind == EventKind::stop) return "stopped on request";
    if (event->kind == EventKind::failure) return "failed";
    if (event->kind == EventKind::start || event->kind == EventKind::restart) return "running, or killed";
  }
  return "not known";
}

// Best value and its step; losses are minimised.
std::string best_of(const RunData& run, const std::string& name) {
  const auto found = run.curves.find(name);
  const Point* best = nullptr;
  if (found != run.curves.end())
    for (const Point& point : found->second)
      if (std::isfinite(point.value) &&
          (best == nullptr || (name.ends_with("loss") ? point.value < best->value : point.value > best->value)))
        best = &point;
  return best == nullptr ? "-" : fmt::format("{} at step {:.0f}", short_number(best->value), best->step);
}

// The first evaluation metrics that fit into a table.
std::vector<std::string> evaluation_names(const Runs& runs) {
  std::set<std::string> names;
  for (const RunData& run : runs)
    for (const auto& [name, points] : run.curves)
      if (name.starts_with("eval_") && name != "eval_examples" && name != "eval_seconds") names.insert(name);
  std::vector<std::string> first(names.begin(), names.end());
  first.resize(std::min<size_t>(first.size(), 4));
  return first;
}

}  // namespace

std::string summary_section(const Runs& runs) {
  Table table{
      .caption = "Summary of the runs",
      .columns = {"Run", "Steps", "Last loss", "Last images/s", "Checkpoints", "Restarts", "Failures", "Outcome"}};
  const std::vector<std::string> evaluations = evaluation_names(runs);
  for (const std::string& name : evaluations) table.columns.push_back("Best " + name);
  for (const RunData& run : runs) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {run.name,
           fmt::format("{:.0f}", last_step(run)),
           short_number(last_of(run, run.curves.contains("loss") ? "loss" : "total_cost")),
           short_number(last_of(run, "images_per_sec")),
           fmt::to_string(run.checkpoints.size()),
           count_of(run, {EventKind::restart}),
           count_of(run, {EventKind::failure, EventKind::loss}),
           outcome_of(run)};
    for (const std::string& name : evaluations) row.push_back(best_of(run, name));
  }
  return to_html(table);
}

std::string notice_section(const Runs& runs) {
  std::string items;
  for (const RunData& run : runs) {
    for (const std::string& notice : run.notices) items += "<li>" + html_text(notice) + "</li>\n";
    if (run.not_finite > 0)
      items += fmt::format("<li>{}: {} values are not finite; curves are interrupted there</li>\n", html_text(run.name),
                           run.not_finite);
  }
  return items.empty() ? items : "<div class=\"card notices\"><ul>\n" + items + "</ul></div>\n";
}

std::string event_section(const Runs& runs) {
  Table table{.caption = "Starts, ends and faults in the logs",
              .columns = {"Event", "Run", "Where", "After step", "Line"}};
  for (const RunData& run : runs)
    for (const LogEvent& event : run.events) {
      const std::string where = event.line > 0 ? fmt::format("{}:{}", event.file, event.line) : event.file;
      table.rows.push_back({name_of(event.kind), run.name, where, fmt::to_string(event.step), event.text});
      table.classes.push_back(name_of(event.kind));
    }
  return table.rows.empty() ? "" : "<div class=\"scroll\">" + to_html(table) + "</div>\n";
}

std::string checkpoint_section(const Runs& runs) {
  Table table{.caption = "Checkpoints", .columns = {"Step", "Run", "MB", "Written (UTC)", "State"}};
  for (const RunData& run : runs)
    for (const Checkpoint& one : run.checkpoints) {
      table.rows.push_back({fmt::to_string(one.step), run.name,
                            fmt::format("{:.1f}", static_cast<double>(one.bytes) / 1e6), one.written,
                            one.complete ? "complete" : "damaged or unfinished"});
      table.classes.emplace_back(one.complete ? "" : "failure");
    }
  return table.rows.empty() ? "" : "<div class=\"scroll\">" + to_html(table) + "</div>\n";
}

std::string to_html(const std::string& title, const Runs& runs) {
  return to_page(title, {{"summary", "Summary", summary_section(runs)},
                         {"notices", "Notices", notice_section(runs)},
                         {"curves", "Curves", curve_section(runs)},
                         {"step-parts", "Parts of a step", step_part_section(runs)},
                         {"other", "Other figures", other_figure_section(runs)},
                         {"timeline", "Timeline", timeline_section(runs)},
                         {"events", "Failures and restarts", event_section(runs)},
                         {"checkpoints", "Checkpoints", checkpoint_section(runs)},
                         {"configuration", "Configuration", setting_section(runs)},
                         {"images", "Images", sample_section(runs)}});
}

}  // namespace dtrain::report
