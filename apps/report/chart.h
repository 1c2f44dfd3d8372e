// Curves as SVG, with what a keyboard and a screen reader need.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/report/run_data.h"

namespace dtrain::report {

struct ChartLine {
  std::string name{};
  size_t colour = 0;  // its number; there are eight, which recur with another dash
  std::vector<Point> points{};
};

struct Chart {
  std::string title{};
  std::vector<ChartLine> lines{};
  bool from_zero = false;  // the axis of values begins at 0
};

inline constexpr size_t kColumns = 400;  // of pixels that a curve is drawn in

// Of each of so many columns of steps the lowest and the highest point, beside the first and the last of all; of values
// that are not finite the first of each column. At most 3 * columns + 2 points, in their order.
std::vector<Point> decimated(const std::vector<Point>& points, size_t columns = kColumns);

// The mean of each column at the middle of its points, without what is not finite.
std::vector<Point> means(const std::vector<Point>& points, size_t columns = kColumns);

// A figure with the curves; of those with more points than columns the means in front of the extremes. It has a legend
// of switches, a line that says the values at a step, which a pointer or the arrow keys choose, and a table of the
// extremes. Its size does not depend on the number of points.
std::string to_html(const Chart& chart);

// A timeline of lanes; spans that are closer than a pixel are drawn as one.
std::string to_html(const std::vector<Lane>& lanes);

// "12.3", "1.2e-05"
std::string short_number(double value);

}  // namespace dtrain::report
