// The micro-kernels of products by tile registers (AMX): 16 rows by 64 bytes, and sums of 16 by 16. They take the
// panels of product.h and product_int8.h, and rows of the left-hand side that lie a constant distance apart.
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"

namespace dtrain::cpu {

// Row i of the result is the sum over `taps` runs of k elements each, of run t from at[t] + i * step on, times the
// panel. T is Bf16 or uint8_t.
template <class T>
struct AmxGemm {
  int64_t rows;     // any number
  int64_t taps, k;  // k: whole words of 32 bits
  const T* const* at;
  int64_t step;
  const void* panel;
  const int64_t* places;  // [rows]: where each begins in y, and in the residual; negative: it is not stored
  int64_t valid;          // columns that are stored, from 1 to `columns`
  PrefetchRange prefetch{};
};

// Panels [depth][columns] of pairs, turned: [columns][row], of which `depth` are there, a multiple of 16.
struct TransposedPanels {
  int64_t count, depth;
  const Bf16Pair* data;
  int64_t row, step;  // pairs from one row to the next, and from one panel
};

// The place of a row is that in `y` and in the residual. Null where the set has no tile registers.
struct AmxKernels {
  // `streams`: as in GatheredRows.
  void (*bf16)(const AmxGemm<Bf16>&, const Epilogue<Bf16>&, Bf16* y, bool non_temporal) = nullptr;
  void (*u8s8)(const AmxGemm<uint8_t>&, const Requantize&, const RequantizeOutput& y) = nullptr;
  // Turns one panel [depth][columns]; rows of `to` are `row` pairs apart.
  void (*transpose_panel)(int64_t depth, const Bf16Pair* panel, Bf16Pair* to, int64_t row) = nullptr;
  // y [count * columns][columns] = or += the products of the turned panels and panel b [depth][columns].
  void (*transposed_a)(const TransposedPanels&, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                       const PrefetchRange&) = nullptr;
};

}  // namespace dtrain::cpu
