#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apps/cli/html.h"
#include "apps/report/chart.h"
#include "apps/report/sections.h"

namespace dtrain::report {
namespace {

constexpr size_t kMostCharts = 60;  // per section

enum class Group : uint8_t { loss, accuracy, rate, throughput, step_part, other, hidden };

Group group_of(const std::string& name) {
  if (name.starts_with("checkpoint_") || name == "seconds_left" || name == "eval_examples" || name == "eval_seconds")
    return Group::hidden;
  if (name.starts_with("eval_") || name.find("accuracy") != name.npos || name.find("mAP") != name.npos)
    return Group::accuracy;
  if (name.ends_with("loss") || name.ends_with("cost")) return Group::loss;
  if (name == "learning_rate") return Group::rate;
  if (name == "images_per_sec" || name.find("throughput") != name.npos) return Group::throughput;
  if (name.ends_with("_ms") && !name.starts_with("all_reduce")) return Group::step_part;
  return Group::other;
}

// Metric names of a group: "loss" and "total_loss" first.
std::vector<std::string> names_of(const Runs& runs, Group group) {
  std::set<std::string> names;
  for (const RunData& run : runs)
    for (const auto& [name, points] : run.curves)
      if (group_of(name) == group) names.insert(name);
  std::vector<std::string> ordered(names.begin(), names.end());
  std::ranges::stable_partition(ordered,
                                [](const std::string& name) { return name == "loss" || name == "total_loss"; });
  return ordered;
}

// One chart per metric, with a curve per run.
std::string charts_of(const Runs& runs, const std::vector<Group>& groups) {
  std::string out;
  size_t count = 0;
  for (const Group group : groups)
    for (const std::string& name : names_of(runs, group)) {
      if (++count > kMostCharts) continue;
      Chart chart{.title = name, .from_zero = group == Group::throughput || group == Group::rate};
      for (size_t i = 0; i < runs.size(); ++i)
        if (const auto found = runs[i].curves.find(name); found != runs[i].curves.end())
          chart.lines.push_back({runs[i].name, i, found->second});
      out += to_html(chart);
    }
  if (out.empty()) return out;
  out = "<div class=\"grid\">\n" + out + "</div>\n";
  if (count > kMostCharts) out += fmt::format("<p>{} more metrics are omitted.</p>\n", count - kMostCharts);
  return out;
}

}  // namespace

std::string curve_section(const Runs& runs) {
  return charts_of(runs, {Group::loss, Group::accuracy, Group::rate, Group::throughput});
}

std::string other_figure_section(const Runs& runs) { return charts_of(runs, {Group::other}); }

std::string step_part_section(const Runs& runs) {
  const std::vector<std::string> names = names_of(runs, Group::step_part);
  std::string out;
  for (const RunData& run : runs) {
    Chart chart{.title = fmt::format("{}: milliseconds of a step", run.name), .from_zero = true};
    for (size_t i = 0; i < std::min(names.size(), kMostCharts); ++i)
      if (const auto found = run.curves.find(names[i]); found != run.curves.end())
        chart.lines.push_back({names[i], i, found->second});
    if (!chart.lines.empty()) out += to_html(chart);
  }
  return out.empty() ? out : "<div class=\"grid\">\n" + out + "</div>\n";
}

// Files of --timeline are from rank 0; the chief's metrics describe the other ranks.
std::string timeline_section(const Runs& runs) {
  std::string out;
  for (const RunData& run : runs) {
    out += "<h3>" + cli::html_text(run.name) + "</h3>\n" + to_html(run.lanes);
    if (run.rank_lanes.size() > 1)
      out +=
          "<p>From the metrics: how long each rank took for its own part of the steps, and waited for the slowest "
          "rank. Of steps that share a column the work is drawn first.</p>\n" +
          to_html(run.rank_lanes);
    else if (run.lanes.empty())
      out +=
          "<p>This run has no timeline. With --timeline=FILE.json in its folder the first rank writes one, and with "
          "--metrics_file=FILE.jsonl a run of 2 to 64 ranks has one of all its ranks.</p>\n";
  }
  return out;
}

}  // namespace dtrain::report
