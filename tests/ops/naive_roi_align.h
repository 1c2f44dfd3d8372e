// Reference implementation of RoIAlign in double precision.
#pragma once

#include <algorithm>
#include <cmath>

#include "dtrain/ops/roi_align.h"
#include "tests/testing.h"

namespace dtrain {

// Bilinear interpolation at (y, x) of an image's channel.
inline double naive_bilinear(const Array& map, int64_t image, double y, double x, int64_t channel) {
  const int64_t height = map.dim(1), width = map.dim(2);
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) return 0;
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  double sum = 0;
  for (const int64_t h : {static_cast<int64_t>(y), static_cast<int64_t>(y) + 1})
    for (const int64_t w : {static_cast<int64_t>(x), static_cast<int64_t>(x) + 1})
      if (h < height && w < width)
        sum += (1 - std::abs(y - static_cast<double>(h))) * (1 - std::abs(x - static_cast<double>(w))) *
               map.at(image, h, w, channel);
  return sum;
}

// [1, height, width, c]: one region, corners in image pixels.
inline Array naive_roi_align(const Array& map, int64_t image, const std::vector<float>& roi, double scale,
                             const RoiAlignOptions& o) {
  const double offset = o.aligned ? 0.5 : 0;
  const double left = roi[0] * scale - offset, top = roi[1] * scale - offset;
  double width = roi[2] * scale - offset - left, height = roi[3] * scale - offset - top;
  if (!o.aligned) width = std::max(width, 1.0), height = std::max(height, 1.0);
  const double cell_h = height / o.height, cell_w = width / o.width;
  const int rows = o.sampling_ratio > 0 ? o.sampling_ratio : std::max(0, static_cast<int>(std::ceil(cell_h)));
  const int columns = o.sampling_ratio > 0 ? o.sampling_ratio : std::max(0, static_cast<int>(std::ceil(cell_w)));
  Array y({1, o.height, o.width, map.dim(3)});
  for (int p = 0; p < o.height; ++p)
    for (int q = 0; q < o.width; ++q)
      for (int64_t c = 0; c < map.dim(3); ++c) {
        double sum = 0;
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < columns; ++j)
            sum += naive_bilinear(map, image, top + (p + (i + 0.5) / rows) * cell_h,
                                  left + (q + (j + 0.5) / columns) * cell_w, c);
        y.at(0, p, q, c) = sum / std::max(rows * columns, 1);
      }
  return y;
}

}  // namespace dtrain
