// The micro-kernel of matrix products whose right-hand side is packed once and used often.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "libdtrain/cpu/simd.h"

namespace dtrain::cpu {

// The kernel computes up to kTileRows x kTileColumns of the result. B comes in panels of kTileColumns columns: [k][16].
inline constexpr int kTileRows = 6;
inline constexpr int kTileColumns = 16;

// c[0..R, 0..16] = or += a [R, k] * panel [k, 16]. Rows of `a` are `a_stride` floats apart and its columns `a_step`,
// rows of `c` `c_stride`. At R = 6 the twelve accumulators, two vectors of B and one of A fit the sixteen registers of
// AVX2.
template <int R>
inline void gemm_tile(int64_t k, const float* a, int64_t a_stride, int64_t a_step, const float* panel, float* c,
                      int64_t c_stride, bool add) {
  Float8 sum[R][2] = {};
  for (int64_t p = 0; p < k; ++p, a += a_step, panel += kTileColumns) {
    const Float8 b0 = load8(panel), b1 = load8(panel + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Float8 value = broadcast8(a[r * a_stride]);
      sum[r][0] += value * b0;
      sum[r][1] += value * b1;
    }
  }
  for (int r = 0; r < R; ++r, c += c_stride) {
    store8(c, add ? load8(c) + sum[r][0] : sum[r][0]);
    store8(c + 8, add ? load8(c + 8) + sum[r][1] : sum[r][1]);
  }
}

// The same for any number of rows of a row-major `a`.
inline void gemm_rows(int64_t rows, int64_t k, const float* a, int64_t a_stride, const float* panel, float* c,
                      int64_t c_stride, bool add) {
  for (; rows >= kTileRows; rows -= kTileRows, a += kTileRows * a_stride, c += kTileRows * c_stride)
    gemm_tile<kTileRows>(k, a, a_stride, 1, panel, c, c_stride, add);
  switch (rows) {
    case 1:
      return gemm_tile<1>(k, a, a_stride, 1, panel, c, c_stride, add);
    case 2:
      return gemm_tile<2>(k, a, a_stride, 1, panel, c, c_stride, add);
    case 3:
      return gemm_tile<3>(k, a, a_stride, 1, panel, c, c_stride, add);
    case 4:
      return gemm_tile<4>(k, a, a_stride, 1, panel, c, c_stride, add);
    case 5:
      return gemm_tile<5>(k, a, a_stride, 1, panel, c, c_stride, add);
    default:
      return;
  }
}

// c[0..16, 0..16] = or += a^T b for panels a and b, [k][16].
inline void gemm_panels(int64_t k, const float* a, const float* b, float* c, int64_t c_stride, bool add) {
  gemm_tile<6>(k, a, 1, kTileColumns, b, c, c_stride, add);
  gemm_tile<6>(k, a + 6, 1, kTileColumns, b, c + 6 * c_stride, c_stride, add);
  gemm_tile<4>(k, a + 12, 1, kTileColumns, b, c + 12 * c_stride, c_stride, add);
}

}  // namespace dtrain::cpu
