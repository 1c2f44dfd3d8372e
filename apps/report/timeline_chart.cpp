#include <algorithm>
#include <bitset>
#include <map>

#include <fmt/format.h>

#include "apps/cli/html.h"
#include "apps/report/axis.h"
#include "apps/report/chart.h"
#include "apps/report/page.h"

namespace dtrain::report {
namespace {

using cli::html_text;

constexpr size_t kPixels = 1600;  // of a lane
constexpr size_t kMostLanes = 64, kMostRows = 200;
constexpr double kTimelineWidth = 1000, kLane = 40;

using Drawn = std::bitset<kPixels>;

Range range_of(const std::vector<Lane>& lanes) {
  Range range;
  for (const Lane& lane : lanes)
    for (const Span& span : lane.spans) {
      range.add(span.begin);
      range.add(span.end);
    }
  return range;
}

std::string path_of(const Drawn& drawn, double y) {
  constexpr double kPixel = kTimelineWidth / kPixels;
  std::string path;
  for (size_t begin = 0; begin < kPixels; ++begin) {
    if (!drawn[begin]) continue;
    size_t end = begin;
    while (end < kPixels && drawn[end]) ++end;
    const double width = kPixel * static_cast<double>(end - begin);
    path += fmt::format("M{:.1f} {:.0f}h{:.2f}v16h-{:.2f}z", kPixel * static_cast<double>(begin), y, width, width);
    begin = end;
  }
  return path;
}

// Colours by span name, the same in all lanes.
using Colours = std::map<std::string, size_t>;

Colours colours_of(const std::vector<Lane>& lanes) {
  Colours colours;
  for (const Lane& lane : lanes)
    for (const std::string& name : lane.names) colours.emplace(name, colours.size() % 8);
  return colours;
}

std::string lane_of(const Lane& lane, const Axis& axis, const Colours& colours, double y) {
  std::map<size_t, Drawn> paths;
  const auto pixel = [&](double time) {
    return std::min(kPixels - 1, static_cast<size_t>(std::max(0.0, axis.share(time)) * kPixels));
  };
  for (const Span& span : lane.spans) {
    Drawn& drawn = paths[colours.at(lane.names[span.name])];
    for (size_t i = pixel(span.begin), last = pixel(span.end); i <= last; ++i) drawn.set(i);
  }
  std::string out = fmt::format("<g class=\"lane\"><text x=\"0\" y=\"{:.0f}\">{}: {}</text>", y + 14,
                                html_text(lane.process), html_text(lane.name));
  for (const auto& [colour, drawn] : paths)
    out += fmt::format("<path class=\"c{}\" d=\"{}\"/>", colour, path_of(drawn, y + 19));
  return out + "</g>\n";
}

Table table_of(const std::vector<Lane>& lanes) {
  Table table{.caption = "Times of the timeline", .columns = {"Lane", "What", "Times", "Total, ms", "Longest, ms"}};
  for (const Lane& lane : lanes)
    for (size_t name = 0; name < lane.names.size() && table.rows.size() < kMostRows; ++name) {
      double total = 0, longest = 0;
      size_t count = 0;
      for (const Span& span : lane.spans) {
        if (span.name != name) continue;
        total += span.end - span.begin;
        longest = std::max(longest, span.end - span.begin);
        ++count;
      }
      table.rows.push_back({lane.process + ": " + lane.name, lane.names[name], fmt::to_string(count),
                            fmt::format("{:.3f}", total / 1e3), fmt::format("{:.3f}", longest / 1e3)});
    }
  return table;
}

std::string legend_of(const Colours& colours) {
  constexpr size_t kMostListed = 24;
  std::string out;
  size_t told = 0;
  for (const auto& [name, colour] : colours)
    if (++told <= kMostListed)
      out += fmt::format("{}<span class=\"c{}\">&#9632; {}</span>", out.empty() ? "" : " &nbsp; ", colour,
                         html_text(name));
  return "<p>" + out + "</p>\n";
}

}  // namespace

std::string to_html(const std::vector<Lane>& lanes) {
  if (lanes.empty()) return "";
  const std::vector<Lane> shown(lanes.begin(),
                                lanes.begin() + static_cast<std::ptrdiff_t>(std::min(lanes.size(), kMostLanes)));
  const Colours colours = colours_of(shown);
  const Range range = range_of(shown);
  const Axis axis{range.low, range.high > range.low ? range.high : range.low + 1};
  const double height = kLane * static_cast<double>(shown.size()) + 24;
  std::string out = fmt::format(
      "<figure class=\"card timeline\" tabindex=\"0\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"Timeline of {} lanes over {} seconds; its times are in the table below\">\n<g class=\"axes\">",
      kTimelineWidth, height, shown.size(), short_number((axis.high - axis.low) / 1e6));
  for (const double tick : ticks_of({0, (axis.high - axis.low) / 1e6}, 8)) {
    const double x = kTimelineWidth * tick * 1e6 / (axis.high - axis.low);
    out += fmt::format(
        "<path d=\"M{0:.1f} 0V{1:.0f}\"/><text x=\"{0:.1f}\" y=\"{2:.0f}\" text-anchor=\"{3}\">{4} s</text>", x,
        height - 18, height - 4,
        x < 20                    ? "start"
        : x > kTimelineWidth - 20 ? "end"
                                  : "middle",
        short_number(tick));
  }
  out += "</g>\n";
  double y = 0;
  for (const Lane& lane : shown) {
    out += lane_of(lane, axis, colours, y);
    y += kLane;
  }
  out += "</svg></figure>\n" + legend_of(colours);
  if (lanes.size() > shown.size())
    out += fmt::format("<p>{} more lanes are left out.</p>\n", lanes.size() - shown.size());
  return out + "<details><summary>Table</summary>" + to_html(table_of(shown)) + "</details>\n";
}

}  // namespace dtrain::report
