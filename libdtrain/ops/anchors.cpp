#include "dtrain/ops/anchors.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

using Corners = std::array<double, 4>;

Corners around(double x, double y, double width, double height) {
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

// In single precision, as torchvision computes: the last bit decides how halves round.
Corners rounded_corners(float size, float ratio) {
  const float h_ratio = std::sqrt(ratio), w_ratio = 1 / h_ratio;
  const float w = w_ratio * size / 2, h = h_ratio * size / 2;
  return {std::nearbyint(-w), std::nearbyint(-h), std::nearbyint(w), std::nearbyint(h)};
}

Corners detectron_corners(double stride, double size, double ratio, bool plus_one) {
  const double scale = size / stride, w = std::nearbyint(std::sqrt(stride * stride / ratio));
  Corners corners = around(stride / 2, stride / 2, w * scale, std::nearbyint(w * ratio) * scale);
  if (plus_one) corners[2] -= 1, corners[3] -= 1;
  return corners;
}

Corners cell_anchor(const AnchorOptions& o, float size, float ratio) {
  if (o.rounding == AnchorOptions::Rounding::detectron) return detectron_corners(o.stride_w, size, ratio, o.plus_one);
  Corners corners;
  if (o.rounding == AnchorOptions::Rounding::corners) {
    corners = rounded_corners(size, ratio);
  } else {
    const double w = std::sqrt(double{size} * size / ratio);
    corners = around(0, 0, w, ratio * w);
  }
  if (o.centre == AnchorOptions::Centre::middle)
    for (size_t i = 0; i < 4; ++i) corners[i] += (i % 2 == 0 ? o.stride_w : o.stride_h) / 2;
  return corners;
}

// Anchors of cell (0, 0).
std::vector<Corners> cell_anchors(const AnchorOptions& o) {
  std::vector<Corners> anchors;
  if (o.rounding == AnchorOptions::Rounding::none) {
    for (const float size : o.sizes)
      for (const float ratio : o.ratios) anchors.push_back(cell_anchor(o, size, ratio));
  } else {
    for (const float ratio : o.ratios)
      for (const float size : o.sizes) anchors.push_back(cell_anchor(o, size, ratio));
  }
  return anchors;
}

void require_positive(const char* what, const std::vector<float>& values) {
  DT_CHECK(!values.empty(), "anchors: there are no ", what);
  for (const float value : values)
    DT_CHECK(value > 0 && std::isfinite(value), "anchors: ", what, " ", value, " must be positive and finite");
}

}  // namespace

std::vector<float> make_anchors(const AnchorOptions& options, int64_t rows, int64_t columns) {
  require_positive("sizes", options.sizes);
  require_positive("ratios", options.ratios);
  require_positive("strides", {options.stride_h, options.stride_w});
  DT_CHECK(rows >= 0 && columns >= 0, "anchors: a map of ", rows, " x ", columns, " cells");
  DT_CHECK(options.rounding != AnchorOptions::Rounding::detectron || options.stride_h == options.stride_w,
           "anchors: Detectron's have one stride, found ", options.stride_h, " and ", options.stride_w);
  const std::vector<Corners> cell = cell_anchors(options);
  std::vector<float> anchors;
  anchors.reserve(static_cast<size_t>(rows * columns) * cell.size() * 4);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const double y = static_cast<double>(i) * options.stride_h, x = static_cast<double>(j) * options.stride_w;
      for (const Corners& c : cell)
        for (const double corner : {c[0] + x, c[1] + y, c[2] + x, c[3] + y})
          anchors.push_back(static_cast<float>(corner));
    }
  return anchors;
}

}  // namespace dtrain
