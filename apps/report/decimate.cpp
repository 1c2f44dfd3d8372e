#include <algorithm>
#include <array>
#include <cmath>

#include "apps/report/chart.h"

namespace dtrain::report {
namespace {

// Indices of a column's kept points.
struct Column {
  size_t lowest = SIZE_MAX, highest = SIZE_MAX, lost = SIZE_MAX;
};

size_t column_of(const std::vector<Point>& points, size_t i, size_t columns) {
  const double width = points.back().step - points.front().step;
  const double share = width > 0 ? (points[i].step - points.front().step) / width : 0;
  return std::min(columns - 1, static_cast<size_t>(share * static_cast<double>(columns)));
}

}  // namespace

std::vector<Point> means(const std::vector<Point>& points, size_t columns) {
  std::vector<Point> sums(columns);
  std::vector<double> counts(columns);
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].value)) continue;
    const size_t column = column_of(points, i, columns);
    sums[column].step += points[i].step;
    sums[column].value += points[i].value;
    ++counts[column];
  }
  std::vector<Point> out;
  for (size_t i = 0; i < columns; ++i)
    if (counts[i] > 0) out.push_back({sums[i].step / counts[i], sums[i].value / counts[i]});
  return out;
}

std::vector<Point> decimated(const std::vector<Point>& points, size_t columns) {
  if (points.size() <= 2 * columns) return points;
  std::vector<Column> all(columns);
  for (size_t i = 0; i < points.size(); ++i) {
    Column& column = all[column_of(points, i, columns)];
    if (!std::isfinite(points[i].value)) {
      column.lost = std::min(column.lost, i);
      continue;
    }
    if (column.lowest == SIZE_MAX || points[i].value < points[column.lowest].value) column.lowest = i;
    if (column.highest == SIZE_MAX || points[i].value > points[column.highest].value) column.highest = i;
  }
  std::vector<size_t> kept = {0, points.size() - 1};
  for (const Column& column : all)
    for (const size_t i : std::array{column.lowest, column.highest, column.lost})
      if (i != SIZE_MAX) kept.push_back(i);
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::vector<Point> out;
  for (const size_t i : kept) out.push_back(points[i]);
  return out;
}

}  // namespace dtrain::report
