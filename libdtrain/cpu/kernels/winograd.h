// The transforms of Winograd's F(4x4, 3x3), a tile at a time: all channels of it, in vectors. Channels fill vectors.
// Where a transformed tile lies: channel c of point p, of 36, at to[p * point_step + c / run * run_step + c % run].
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/product.h"

namespace dtrain::cpu {

// Addresses of the pixels of a 6x6 window of an NHWC image, row by row; zeros stand for those outside it.
struct WinogradWindow {
  const float* pixels[36];
};

struct WinogradPlace {
  float* to;
  int64_t point_step, run, run_step;  // run: whole vectors
};

// Where the transform of products is written: up to 4x4 pixels of an NHWC image.
struct WinogradPixels {
  float* to;  // of the first pixel; `end.residual` likewise
  int64_t row_step, column_step, rows, columns;
  ProductEnd end{};
};

// Filters of `outer` columns by kLanes inner channels: the element of outer channel o, inner channel i and tap t, of 9,
// is w[o * outer_step + t * tap_step + i * inner_step]; one of outer_step and inner_step is 1. The tap is counted from
// the last one where `turned`. The transform of inner channel i goes to to[p * point_step + i * columns], outer
// channels last.
struct WinogradFilters {
  const float* w;
  int64_t outer_step, tap_step, inner_step;
  bool turned;
  float* to;
  int64_t point_step;
};

struct WinogradKernels {
  int lanes;                                                                             // of a vector
  void (*input_tile)(const WinogradWindow&, int64_t channels, const WinogradPlace&);     // B^T d B
  void (*gradient_tile)(const WinogradWindow&, int64_t channels, const WinogradPlace&);  // A dy A^T, of its first 4x4
  // A^T m A of products [36][channels].
  void (*output_tile)(const float* products, int64_t channels, const WinogradPixels&);
  // G g G^T
  void (*filters)(const WinogradFilters&);
  // dw [9][channels] = or += G^T u G of the points of u, which are `point_step` floats apart.
  void (*filter_gradient)(const float* u, int64_t point_step, int64_t channels, float* dw, bool add);
};

}  // namespace dtrain::cpu
