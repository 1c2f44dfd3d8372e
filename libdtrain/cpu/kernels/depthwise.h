// The inner loops of depthwise convolutions. An element is summed in the same order by all instruction sets, so that
// the bits are the same.
#pragma once

#include <cstdint>

namespace dtrain::cpu {

inline constexpr int kDepthwiseRows = 7;  // of taps, at most

// Neighbouring pixels of one row of y, each of which is a sum over the same taps, rows of `taps` of them:
// y[pixel] = bias + sum over row, tap of w[row][tap] * x[row][pixel, tap], or += it. Steps are in floats. `taps` is 0
// where there are no rows.
struct DepthwiseRun {
  struct Row {
    const float *x, *w;  // of the first pixel and of the first tap
  };
  Row rows[kDepthwiseRows] = {};
  int64_t row_count, taps, pixels, channels;
  int64_t x_tap_step, w_tap_step, x_pixel_step, y_pixel_step;
  const float* bias;  // null: zeros
  float* y;
  bool add;
  int64_t
      ahead;  // from the last rows to those that the next row of y reads, which are fetched; may be beyond the image
};

// The gradient of the same taps: sums[row][tap] += the sum over the pixels of dy[pixel] * x[row][pixel, tap].
struct DepthwiseProducts {
  struct Row {
    const float* x;
    float* sums;
  };
  Row rows[kDepthwiseRows] = {};
  int64_t row_count, taps, pixels, channels;
  int64_t x_tap_step, sums_tap_step, x_pixel_step, dy_pixel_step;
  const float* dy;
  int64_t x_ahead, dy_ahead;
};

struct DepthwiseKernels {
  void (*sum_taps)(const DepthwiseRun&);
  void (*add_products)(const DepthwiseProducts&);
};

}  // namespace dtrain::cpu
