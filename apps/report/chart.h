// SVG charts, accessible by keyboard and screen reader.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/report/run_data.h"

namespace dtrain::report {

struct ChartLine {
  std::string name{};
  size_t colour = 0;  // index into eight colours, which recur with another dash
  std::vector<Point> points{};
};

struct Chart {
  std::string title{};
  std::vector<ChartLine> lines{};
  bool from_zero = false;  // the value axis starts at 0
};

inline constexpr size_t kColumns = 400;  // horizontal resolution of curves in pixels

// Min-max decimation: the lowest and the highest point per column of steps, the first and the last point, and the first
// non-finite point per column. At most 3 * columns + 2 points, in order.
std::vector<Point> decimated(const std::vector<Point>& points, size_t columns = kColumns);

// Mean of the finite values per column, at the middle of its points.
std::vector<Point> means(const std::vector<Point>& points, size_t columns = kColumns);

// Figure with the curves; curves with more points than columns are drawn as means in front of the extremes. Has a
// legend of switches, a line with the values at a step (chosen by pointer or arrow keys), and a table of extremes. Its
// size does not depend on the number of points.
std::string to_html(const Chart& chart);

// Timeline of lanes; merges spans closer than a pixel.
std::string to_html(const std::vector<Lane>& lanes);

// "12.3", "1.2e-05"
std::string short_number(double value);

}  // namespace dtrain::report
