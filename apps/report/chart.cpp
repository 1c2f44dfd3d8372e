#include "apps/report/chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/html.h"
#include "apps/cli/messages.h"
#include "apps/report/axis.h"
#include "apps/report/page.h"

namespace dtrain::report {
namespace {

using cli::html_text;
using Json = nlohmann::json;

// Size of the chart in SVG units.
constexpr double kWidth = 480, kHeight = 220, kLeft = 62, kRight = 470, kTop = 10, kBottom = 190;

struct Scales {
  Axis x, y;
  double at_x(double step) const { return kLeft + (kRight - kLeft) * x.share(step); }
  double at_y(double value) const { return kBottom - (kBottom - kTop) * y.share(value); }
};

Scales scales_of(const Chart& chart) {
  Range steps, values;
  for (const ChartLine& line : chart.lines)
    for (const Point& point : line.points) {
      steps.add(point.step);
      values.add(point.value);
    }
  if (chart.from_zero) values.add(0);
  return {{steps.low, steps.high > steps.low ? steps.high : steps.low + 1}, round_axis(values)};
}

std::string style_of(const ChartLine& line) {
  return fmt::format("c{}{}", line.colour % 8, line.colour >= 8 ? " dashed" : "");
}

// A non-finite value interrupts the curve.
std::string path_of(const std::vector<Point>& points, const Scales& scales) {
  std::string path;
  bool open = false;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].value)) {
      open = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", open ? 'L' : 'M', scales.at_x(points[i].step), scales.at_y(points[i].value));
    if (!open) path += "h0";  // an isolated point is a dot
    open = true;
  }
  return path;
}

// Few points, such as of evaluations, are marked.
std::string dots_of(const std::vector<Point>& points, const Scales& scales) {
  constexpr size_t kFew = 60;
  std::string path;
  if (points.size() > kFew) return path;
  for (const Point& point : points)
    if (std::isfinite(point.value))
      path += fmt::format("M{:.1f} {:.1f}h.01", scales.at_x(point.step), scales.at_y(point.value));
  return "<path class=\"dots\" d=\"" + path + "\"/>";
}

std::string axes_of(const Scales& scales) {
  std::string out = "<g class=\"axes\">";
  for (const double y : ticks_of(scales.y, 4))
    out +=
        fmt::format("<path d=\"M{:.0f} {:.1f}H{:.0f}\"/><text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                    kLeft, scales.at_y(y), kRight, kLeft - 6, scales.at_y(y) + 4, short_number(y));
  for (const double x : ticks_of(scales.x, 5))
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", scales.at_x(x), kBottom + 17,
                       short_number(x));
  return out + fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">step</text></g>", kRight, kHeight - 1);
}

std::string table_of(const Chart& chart) {
  std::string rows;
  for (const ChartLine& line : chart.lines) {
    Point low, high, last;
    bool any = false;
    for (const Point& point : line.points) {
      if (!std::isfinite(point.value)) continue;
      if (!any || point.value < low.value) low = point;
      if (!any || point.value > high.value) high = point;
      last = point;
      any = true;
    }
    if (!any) continue;
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>", html_text(line.name), line.points.size());
    for (const Point& point : {low, high, last})
      rows += fmt::format("<td>{} <small>at {:.0f}</small></td>", short_number(point.value), point.step);
    rows += "</tr>\n";
  }
  return fmt::format(
      "<details><summary>Table</summary><div class=\"table\" tabindex=\"0\"><table><caption>{}</caption>\n"
      "<thead><tr><th scope=\"col\">Curve</th><th scope=\"col\">Points</th><th scope=\"col\">Lowest</th>"
      "<th scope=\"col\">Highest</th><th scope=\"col\">Last</th></tr></thead>\n<tbody>{}</tbody></table></div>"
      "</details>\n",
      html_text(chart.title), rows);
}

// Data for the script: [{"name": ..., "points": [[step, value], ...]}, ...]. Built without nlohmann/json, which cannot
// round values to six digits; they keep the page small.
std::string points_of(const std::vector<ChartLine>& lines) {
  std::string out;
  for (const ChartLine& line : lines) {
    out += fmt::format("{}{{\"name\":{},\"points\":[", out.empty() ? "[" : ",", script_text(cli::escaped(line.name)));
    const char* separator = "";
    for (const Point& point : line.points) {
      out += std::isfinite(point.value) ? fmt::format("{}[{:.10g},{:.6g}]", separator, point.step, point.value)
                                        : fmt::format("{}[{:.10g},null]", separator, point.step);
      separator = ",";
    }
    out += "]}";
  }
  return out + "]";
}

std::string legend_of(const Chart& chart) {
  std::string out = "<div class=\"legend\" role=\"group\" aria-label=\"Curves\">";
  for (const ChartLine& line : chart.lines)
    out += fmt::format("<button type=\"button\" aria-pressed=\"true\" class=\"{}\">{}</button>", style_of(line),
                       html_text(line.name));
  return out + "</div>\n";
}

}  // namespace

std::string to_html(const Chart& chart) {
  Chart drawn = chart;
  for (ChartLine& line : drawn.lines) line.points = decimated(line.points);
  const Scales scales = scales_of(drawn);
  std::string curves;
  for (size_t i = 0; i < drawn.lines.size(); ++i) {
    const std::vector<Point>& all = chart.lines[i].points;
    const bool is_band = all.size() > 2 * kColumns;
    curves += fmt::format("<g class=\"curve {}\"><path{} d=\"{}\"/>", style_of(chart.lines[i]),
                          is_band ? " class=\"band\"" : "", path_of(drawn.lines[i].points, scales));
    if (is_band) curves += fmt::format("<path d=\"{}\"/>", path_of(means(all), scales));
    curves += dots_of(all, scales) + "</g>";
  }
  const std::string title = html_text(chart.title);
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{0}</figcaption>\n"
      "<div class=\"plot\" tabindex=\"0\" role=\"slider\" aria-label=\"{0}, point by point\" aria-valuemin=\"{1:.0f}\" "
      "aria-valuemax=\"{2:.0f}\" aria-valuenow=\"{2:.0f}\" aria-valuetext=\"step {2:.0f}\" data-low=\"{1:.10g}\" "
      "data-high=\"{2:.10g}\" data-bottom=\"{3:.10g}\" data-top=\"{4:.10g}\">\n"
      "<svg viewBox=\"0 0 {5:.0f} {6:.0f}\" aria-hidden=\"true\">{7}{8}<g class=\"cursor\"></g></svg></div>\n"
      "<p class=\"values\">&nbsp;</p>\n{9}{10}<script type=\"application/json\">{11}</script>\n</figure>\n",
      title, scales.x.low, scales.x.high, scales.y.low, scales.y.high, kWidth, kHeight, axes_of(scales), curves,
      chart.lines.size() > 1 ? legend_of(chart) : "", table_of(chart), points_of(drawn.lines));
}

}  // namespace dtrain::report
