// The transforms of Winograd's F(4x4, 3x3), one tile at a time, with the channels in vectors; channels are a multiple
// of a vector's lanes. Images and filters are of T, float or Bf16. Transformed tiles and arithmetic are float: the
// transforms lose more digits than bf16 has. Channel c of point p, of 36, of a transformed tile lies at to[p *
// point_step + c / run * run_step + c % run].
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/by_type.h"
#include "libdtrain/cpu/kernels/gemm.h"

namespace dtrain::cpu {

// Addresses of the pixels of a 6x6 window of an NHWC image, row by row; zeros stand for those outside it.
template <class T>
struct WinogradWindow {
  const T* pixels[36];
};

struct WinogradTileLayout {
  float* to;
  int64_t point_step, run, run_step;  // run: whole vectors
};

// The output of the inverse transform: up to 4x4 pixels of an NHWC image.
template <class T>
struct WinogradPixels {
  T* to;  // of the first pixel; `end.residual` likewise
  int64_t row_step, column_step, rows, columns;
  Epilogue<T> end{};
};

// Filters of `outer` columns by kLanes inner channels: the element of outer channel o, inner channel i and tap t, of 9,
// is w[o * outer_step + t * tap_step + i * inner_step]; one of outer_step and inner_step is 1. Taps are counted
// from the last one where `turned` (rotated by 180 degrees). The transform of inner channel i goes to to[p * point_step
// + i * columns], outer channels last.
template <class T>
struct WinogradFilters {
  const T* w;
  int64_t outer_step, tap_step, inner_step;
  bool turned;
  float* to;
  int64_t point_step;
};

template <class T>
struct WinogradTransforms {
  void (*input_tile)(const WinogradWindow<T>&, int64_t channels, const WinogradTileLayout&);  // B^T d B
  void (*gradient_tile)(const WinogradWindow<T>&, int64_t channels,
                        const WinogradTileLayout&);  // A dy A^T, of its first 4x4
  // A^T m A of products [36][channels].
  void (*output_tile)(const float* products, int64_t channels, const WinogradPixels<T>&);
  // G g G^T
  void (*filters)(const WinogradFilters<T>&);
};

// dw [9][channels], taps `tap_step` apart, = or += G^T u G of the points of u [36][channels], `point_step` apart.
struct WinogradFilterGradient {
  const float* u;
  int64_t point_step, channels;
  float* dw;
  int64_t tap_step;
  bool add;
};

struct WinogradKernels : ByType<WinogradTransforms> {
  int lanes;  // of a vector
  void (*filter_gradient)(const WinogradFilterGradient&);
};

}  // namespace dtrain::cpu
