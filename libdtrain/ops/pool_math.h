// Window geometry along one axis and the max-pooling rule, shared by the CPU and CUDA kernels.
#pragma once

#include <cstdint>

#include "dtrain/core/host_device.h"
#include "dtrain/ops/pool.h"

namespace dtrain {

// i clamped to [0, end).
DT_HD inline int clamped(int64_t i, int64_t end) { return static_cast<int>(i < 0 ? 0 : i < end ? i : end - 1); }

struct PoolRange {
  int64_t begin, end;
};

// One axis of a pooling: `in` cells, `out` windows.
struct PoolAxis {
  int64_t in, out;
  int kernel, stride, padding;

  // First cell of window `p`; negative within the padding.
  DT_HD int64_t start(int64_t p) const { return p * stride - padding; }
  // Cells of window `p` inside the image. Never empty: padding is smaller than the kernel.
  DT_HD PoolRange cells(int64_t p) const {
    const int64_t begin = start(p), end = begin + kernel;
    return {begin > 0 ? begin : 0, end < in ? end : in};
  }
  // Windows that cover cell `i`; may be empty. In 32 bits: 64-bit divisions take up to 90 cycles.
  DT_HD PoolRange windows(int64_t i) const {
    const int64_t last = i + padding, first = last - kernel + 1;
    const auto step = static_cast<uint32_t>(stride);
    const int64_t begin = first > 0 ? (static_cast<uint32_t>(first) + step - 1) / step : 0;
    const int64_t end = int64_t{static_cast<uint32_t>(last) / step} + 1;
    return {begin, end < out ? end : out};
  }
};

struct PoolGeometry {
  int64_t n, c;
  PoolAxis rows, columns;

  // `x`: input; `y`: pooled output.
  PoolGeometry(const Tensor& x, const Tensor& y, const PoolOptions& o)
      : n(x.dim(0)),
        c(x.dim(3)),
        rows{x.dim(1), y.dim(1), o.kernel.h, o.stride.h, o.padding.top},
        columns{x.dim(2), y.dim(2), o.kernel.w, o.stride.w, o.padding.left} {}
  DT_HD int64_t cells() const { return int64_t{rows.kernel} * columns.kernel; }
  DT_HD int64_t x_pixel(int64_t image, int64_t h, int64_t w) const {
    return ((image * rows.in + h) * columns.in + w) * c;
  }
  DT_HD int64_t y_pixel(int64_t image, int64_t p, int64_t q) const {
    return ((image * rows.out + p) * columns.out + q) * c;
  }
  // Row-major index of image cell (h, w) within window (p, q).
  DT_HD int64_t cell(int64_t p, int64_t q, int64_t h, int64_t w) const {
    return (h - rows.start(p)) * columns.kernel + w - columns.start(q);
  }
};

// Factor of the sum over window (p, q) for its mean.
DT_HD inline float reciprocal_cells(const PoolGeometry& g, bool count_padding, int64_t p, int64_t q) {
  const PoolRange hs = g.rows.cells(p), ws = g.columns.cells(q);
  const int64_t inside = (hs.end - hs.begin) * (ws.end - ws.begin);
  return 1.0f / static_cast<float>(count_padding ? g.cells() : inside);
}

// Whether `value` replaces the earlier maximum `best`: if larger, or NaN, which is propagated.
DT_HD inline bool wins_window(float value, float best) { return value > best || value != value; }

}  // namespace dtrain
