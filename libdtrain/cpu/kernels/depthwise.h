// Micro-kernels of depthwise convolutions. Images are of T, float or Bf16; filters and all arithmetic are float. All
// instruction sets sum in the same order, so that float results are bitwise equal.
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/by_type.h"

namespace dtrain::cpu {

inline constexpr int kDepthwiseRows = 7;  // of taps, at most

// Neighbouring pixels of one row of y, each a sum over the same row_count x taps filter taps:
// y[pixel] = bias + sum over row, tap of w[row][tap] * x[row][pixel, tap], or += it, rounded once. Steps are in
// elements. `taps` is 0 where there are no rows.
template <class T>
struct DepthwiseRun {
  struct Row {
    const T* x;      // of the first pixel
    const float* w;  // of the first tap
  };
  Row rows[kDepthwiseRows] = {};
  int64_t row_count, taps, pixels, channels;
  int64_t x_tap_step, w_tap_step, x_pixel_step, y_pixel_step;
  const float* bias;  // null: zeros
  T* y;
  bool add;
  int64_t ahead;  // from the last rows to those of the next row of y, which are prefetched; may be beyond the image
};

// The filter gradient of the same taps: sums[row][tap] += the sum over the pixels of dy[pixel] * x[row][pixel, tap].
template <class T>
struct DepthwiseProducts {
  struct Row {
    const T* x;
    float* sums;
  };
  Row rows[kDepthwiseRows] = {};
  int64_t row_count, taps, pixels, channels;
  int64_t x_tap_step, sums_tap_step, x_pixel_step, dy_pixel_step;
  const T* dy;
  int64_t x_ahead, dy_ahead;
};

template <class T>
struct DepthwiseLoops {
  void (*sum_taps)(const DepthwiseRun<T>&);
  void (*add_products)(const DepthwiseProducts<T>&);
};

using DepthwiseKernels = ByType<DepthwiseLoops>;

}  // namespace dtrain::cpu
