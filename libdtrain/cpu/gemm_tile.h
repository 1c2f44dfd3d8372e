// The micro-kernels of matrix products whose right-hand side is packed once and used often.
#pragma once

#include <cstdint>

namespace dtrain::cpu {

// B comes in panels of kTileColumns columns: [k][16]. Groups of rows are best a multiple of kTileRows.
inline constexpr int kTileRows = 6;
inline constexpr int kTileColumns = 16;

// Both are compiled for AVX2 and for AVX-512, and the processor decides. An element of the result is one sum in the
// order of k either way, so that the bits are the same.

// c[0..rows, 0..16] = or += a [rows, k] * panel [k, 16]. Rows of `a` are `a_stride` floats apart, rows of `c`
// `c_stride`.
void gemm_rows(int64_t rows, int64_t k, const float* a, int64_t a_stride, const float* panel, float* c,
               int64_t c_stride, bool add);
// c[0..16, 0..16] = or += a^T b for panels a and b, [k][16].
void gemm_panels(int64_t k, const float* a, const float* b, float* c, int64_t c_stride, bool add);

}  // namespace dtrain::cpu
