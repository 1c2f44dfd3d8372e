// Rasterisation of polygons, defined by the algorithm of COCO's API: edges are drawn as points on a grid five times
// finer than the pixels, with steps of 1 along the longer side and rounding of the other coordinate. Where the outline
// steps between 5x + 2 and 5x + 3, the middle of column x, the pixels below in that column are inverted. Only these
// steps are computed here.
#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"
#include "dtrain/data/coco/rle.h"

namespace dtrain::data::coco {
namespace {

constexpr int kFine = 5, kMiddle = 2;

struct Point {
  int x, y;  // on the fine grid
};

// floor(a / kFine).
int floor_fine(int a) { return a >= 0 ? a / kFine : -((kFine - 1 - a) / kFine); }

// Truncates towards 0 as COCO's API does, also where that is not the nearest.
Point on_grid(double x, double y) {
  if (!(std::abs(x) <= kMaxCoordinate && std::abs(y) <= kMaxCoordinate))
    throw Error(Fault::data,
                concat("a polygon has a corner at ", x, ", ", y, ", expected coordinates of at most ", kMaxCoordinate));
  return {static_cast<int>(kFine * x + .5), static_cast<int>(kFine * y + .5)};
}

class Edge {
 public:
  Edge(Point from, Point to) : steep_(std::abs(to.x - from.x) < std::abs(to.y - from.y)), a_(from), b_(to) {
    if (steep_ ? a_.y > b_.y : a_.x > b_.x) std::swap(a_, b_);
    steps_ = steep_ ? b_.y - a_.y : b_.x - a_.x;
    slope_ = static_cast<double>(steep_ ? b_.x - a_.x : b_.y - a_.y) / std::max(steps_, 1);
  }

  // Columns from 0 to width - 1 whose middle the edge crosses; empty if last < first.
  int first() const { return std::max(floor_fine(std::min(a_.x, b_.x) - kMiddle + kFine - 1), 0); }
  int last(int width) const { return std::min(floor_fine(std::max(a_.x, b_.x) - kMiddle - 1), width - 1); }

  // Fine-grid row of the upper one of the two points around the crossing of the column's middle.
  int row(int column) const {
    const int before = kFine * column + kMiddle;
    if (steep_) return a_.y + step_across(before);
    const int step = before - a_.x;
    return std::min(other(a_.y, step), other(a_.y, step + 1));
  }

 private:
  int other(int start, int step) const { return static_cast<int>(start + slope_ * step + .5); }
  bool is_across(int step, int before) const {
    return slope_ > 0 ? other(a_.x, step) > before : other(a_.x, step) <= before;
  }
  // Last step on this side of the line between `before` and the next point: estimated, then corrected.
  int step_across(int before) const {
    int step = std::clamp(static_cast<int>((before + .5 - a_.x) / slope_), 0, steps_ - 1);
    while (step > 0 && is_across(step, before)) --step;
    while (step + 1 < steps_ && !is_across(step + 1, before)) ++step;
    return step;
  }

  bool steep_;
  Point a_, b_;  // ordered along the longer side
  int steps_;
  double slope_;
};

std::vector<Edge> edges_of(std::span<const double> xy) {
  if (xy.size() < 6 || xy.size() % 2 != 0)
    throw Error(Fault::data, concat("a polygon of ", xy.size(), " numbers, expected x and y of at least 3 corners"));
  std::vector<Edge> edges;
  edges.reserve(xy.size() / 2);
  Point from = on_grid(xy[xy.size() - 2], xy[xy.size() - 1]);
  for (size_t i = 0; i < xy.size(); i += 2) {
    const Point to = on_grid(xy[i], xy[i + 1]);
    edges.emplace_back(from, to);
    from = to;
  }
  return edges;
}

// Ascending pixels, in column-major order, at which inside and outside alternate.
std::vector<uint32_t> crossings(const std::vector<Edge>& edges, int height, int width) {
  int64_t count = 0;
  for (const Edge& edge : edges) count += std::max(edge.last(width) - edge.first() + 1, 0);
  if (count > kMaxCrossings)
    throw Error(Fault::data,
                concat("the outline of a polygon crosses columns ", count, " times, expected at most ", kMaxCrossings));
  std::vector<uint32_t> pixels;
  pixels.reserve(static_cast<size_t>(count));
  for (const Edge& edge : edges)
    for (int column = edge.first(), last = edge.last(width); column <= last; ++column) {
      const int row = std::clamp(floor_fine(edge.row(column) - kMiddle + kFine - 1), 0, height);
      pixels.push_back(static_cast<uint32_t>(column * height + row));
    }
  std::sort(pixels.begin(), pixels.end());
  return pixels;
}

}  // namespace

Rle from_polygon(std::span<const double> xy, int64_t height, int64_t width) {
  check_mask_size(height, width);
  const uint32_t end = static_cast<uint32_t>(height * width);
  Rle rle{height, width, {}};
  const std::vector<uint32_t> changes = crossings(edges_of(xy), static_cast<int>(height), static_cast<int>(width));
  uint32_t at = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (i + 1 < changes.size() && changes[i] == changes[i + 1]) {
      ++i;  // two crossings at one pixel cancel
      continue;
    }
    if (changes[i] == end) break;
    rle.counts.push_back(changes[i] - at);
    at = changes[i];
  }
  rle.counts.push_back(end - at);
  return rle;
}

Rle from_polygons(std::span<const std::vector<double>> polygons, int64_t height, int64_t width) {
  std::vector<Rle> parts;
  parts.reserve(polygons.size());
  for (const std::vector<double>& polygon : polygons) parts.push_back(from_polygon(polygon, height, width));
  return merge(parts);
}

}  // namespace dtrain::data::coco
