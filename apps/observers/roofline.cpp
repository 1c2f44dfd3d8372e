#include "apps/observers/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "apps/cli/html.h"
#include "apps/observers/trace_tables.h"

namespace dtrain::observers {
namespace {

constexpr double kLeft = 80, kTop = 60, kWidth = 620, kHeight = 440, kLegend = 740;  // pixels
constexpr size_t kLegendRows = 30, kNumbered = 12;  // rows of the legend, and numbered points

constexpr char kStyle[] =
    "<style>svg{background:#fff;color:#222;font:13px Helvetica,Arial,sans-serif}text{fill:currentColor}"
    ".grid{stroke:#8884}.roof{fill:none;stroke:#d55e00;stroke-width:2.5}"
    ".op{fill:#0072b2;fill-opacity:.45;stroke:#0072b2}.op.backward{fill:#009e73;stroke:#009e73}"
    "@media(prefers-color-scheme:dark){svg{background:#181a1f;color:#ddd}}</style>\n";

std::string percent(double share) { return share > 0 ? fmt::format("{:.1f} %", 100 * share) : "-"; }

std::string text_at(double x, double y, const std::string& text, const char* attributes = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, attributes, cli::html_text(text));
}

// Points need both coordinates.
bool has_point(const ProfileRow& row) { return row.flops > 0 && row.bytes > 0 && row.seconds > 0; }

// Logarithmic axes over whole decades that contain all points and the ridge point.
struct Axes {
  double low_x, high_x, low_y, high_y;

  Axes(std::span<const ProfileRow> rows, const Roofs& roofs) {
    low_x = high_x = roofs.flops / roofs.bytes;
    low_y = high_y = roofs.flops;
    for (const ProfileRow& row : rows) {
      if (!has_point(row)) continue;
      low_x = std::min(low_x, row.flops / row.bytes);
      high_x = std::max(high_x, row.flops / row.bytes);
      low_y = std::min(low_y, row.flops / row.seconds);
      high_y = std::max(high_y, row.flops / row.seconds);
    }
    const auto below = [](double value) { return std::pow(10, std::floor(std::log10(value) - 0.05)); };
    const auto above = [](double value) { return std::pow(10, std::ceil(std::log10(value) + 0.05)); };
    low_x = below(low_x), high_x = above(high_x), low_y = below(low_y), high_y = above(high_y);
  }

  double at_x(double x) const { return kLeft + kWidth * std::log(x / low_x) / std::log(high_x / low_x); }
  double at_y(double y) const { return kTop + kHeight * std::log(high_y / y) / std::log(high_y / low_y); }
};

std::string draw_frame(const Axes& axes, const Roofs& roofs) {
  std::string out;
  for (double x = axes.low_x; x <= axes.high_x * 1.01; x *= 10)
    out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", axes.at_x(x), kTop, kTop + kHeight) +
           text_at(axes.at_x(x), kTop + kHeight + 18, fmt::format("{:g}", x), " text-anchor=\"middle\"");
  for (double y = axes.low_y; y <= axes.high_y * 1.01; y *= 10)
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, axes.at_y(y), kLeft + kWidth) +
           text_at(kLeft - 8, axes.at_y(y) + 4, fmt::format("{:g}", y / 1e9), " text-anchor=\"end\"");
  out += text_at(kLeft + kWidth / 2, kTop + kHeight + 40, "FLOPs per byte", " text-anchor=\"middle\"");
  out += text_at(kLeft - 60, kTop - 14, "GFLOP/s");
  const double from =
      std::max(axes.low_x, axes.low_y / roofs.bytes);  // intersection of the bandwidth slope with the plot's border
  return out + fmt::format("<polyline class=\"roof\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n",
                           axes.at_x(from), axes.at_y(from * roofs.bytes), axes.at_x(roofs.flops / roofs.bytes),
                           axes.at_y(roofs.flops), axes.at_x(axes.high_x), axes.at_y(roofs.flops));
}

std::string draw_legend_row(size_t row, const std::array<std::string, 4>& cells) {
  constexpr double kEnds[] = {kLegend + 16, kLegend + 74, kLegend + 138};  // of the first three
  const double y = kTop - 10 + 18 * static_cast<double>(row);
  std::string out;
  for (size_t i = 0; i < 3; ++i) out += text_at(kEnds[i], y, cells[i], " font-size=\"12\" text-anchor=\"end\"");
  return out + text_at(kEnds[2] + 12, y, cells[3], " font-size=\"12\"");
}

// Roofline efficiency of a row: max(FLOP/s / peak, bytes/s / bandwidth); 0 if neither is known.
double share_of_roof(const ProfileRow& row, const Roofs& roofs) {
  return row.seconds > 0 ? std::max(row.flops / roofs.flops, row.bytes / roofs.bytes) / row.seconds : 0;
}

}  // namespace

std::vector<std::string> roofline_table(std::span<const WorkRecord> records, const Roofs& roofs) {
  const double total = step_seconds(records);
  const auto steps = static_cast<double>(step_count(records));
  std::vector<std::string> lines = {fmt::format("Ops of {:.0f} steps; peaks measured: {:.1f} GFLOP/s, {:.1f} GB/s",
                                                steps, roofs.flops / 1e9, roofs.bytes / 1e9),
                                    fmt::format("{:<28} {:<9} {:>8} {:>10} {:>7} {:>9} {:>8} {:>8}  Algorithms", "Op",
                                                "Phase", "Calls", "ms/step", "Share", "GFLOP/s", "GB/s", "Of roof")};
  double sum = 0;
  std::string outside;
  for (const ProfileRow& row : profile_rows(records, ProfileBy::op)) {
    const double milliseconds = 1e3 * row.seconds / steps;
    if (row.name == kOutsideOps) {
      outside += fmt::format("{}{} {:.3f}", outside.empty() ? "" : ", ",
                             row.phase.empty() ? "between phases" : row.phase, milliseconds);
      continue;
    }
    sum += milliseconds;
    lines.push_back(fmt::format("{:<28} {:<9} {:>8.1f} {:>10.3f} {:>7} {:>9} {:>8} {:>8}{}{}", row.name, row.phase,
                                static_cast<double>(row.count) / steps, milliseconds, percent(row.seconds / total),
                                rate(row.flops, row.seconds), rate(row.bytes, row.seconds),
                                percent(share_of_roof(row, roofs)), row.algorithms.empty() ? "" : "  ",
                                row.algorithms));
  }
  lines.push_back(
      fmt::format("Ops {:.3f} ms of a step of {:.3f}; outside of them: {}", sum, 1e3 * total / steps, outside));
  return lines;
}

std::string roofline_svg(std::span<const WorkRecord> records, const Roofs& roofs) {
  std::vector<ProfileRow> rows = profile_rows(records, ProfileBy::shapes);
  std::erase_if(rows, [](const ProfileRow& row) { return row.name == kOutsideOps; });
  const double total = step_seconds(records);
  const Axes axes(rows, roofs);
  const double legend_height = 18 * static_cast<double>(std::min(rows.size(), kLegendRows) + 2);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1320\" height=\"{0:.0f}\" viewBox=\"0 0 1320 {0:.0f}\">\n",
      kTop + std::max(kHeight + 60, legend_height));
  out += kStyle;
  out += text_at(kLeft, 24, fmt::format("Roofline: {:.1f} GFLOP/s, {:.1f} GB/s", roofs.flops / 1e9, roofs.bytes / 1e9),
                 " font-size=\"18\"");
  out += draw_legend_row(0, {"", "Of step", "Of roof", "Forward blue, backward green"});
  out += draw_frame(axes, roofs);
  for (size_t i = 0; i < rows.size(); ++i) {
    const ProfileRow& row = rows[i];
    const std::string number = std::to_string(i + 1), of_step = percent(row.seconds / total),
                      of_roof = percent(share_of_roof(row, roofs)),
                      op = fmt::format("{} {} {}{}{}", row.name, row.phase, row.group,
                                       row.algorithms.empty() ? "" : " ", row.algorithms);
    if (i < kLegendRows) out += draw_legend_row(i + 1, {number, of_step, of_roof, op});
    if (!has_point(row)) continue;
    const double x = axes.at_x(row.flops / row.bytes), y = axes.at_y(row.flops / row.seconds);
    const double radius = 3 + 22 * std::sqrt(row.seconds / total);  // proportional area, with a visible minimum
    out += fmt::format("<circle class=\"op {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}</title></circle>\n",
                       row.phase, x, y, radius, cli::html_text(fmt::format("{}: {}, {}", op, of_step, of_roof)));
    if (i < kNumbered) out += text_at(x, y + 4, number, " font-size=\"11\" text-anchor=\"middle\"");
  }
  return out + "</svg>\n";
}

}  // namespace dtrain::observers
