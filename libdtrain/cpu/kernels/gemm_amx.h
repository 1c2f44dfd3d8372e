// GEMM micro-kernels for tile registers (AMX): 16 rows by 64 bytes, and 16 x 16 sums. B is packed as for gemm.h and
// gemm_u8s8.h; rows of A lie a constant distance apart.
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"

namespace dtrain::cpu {

// Row i of the result is the sum over `taps` runs of k elements, of run t from at[t] + i * step on, times the panel. T
// is Bf16 or uint8_t.
template <class T>
struct AmxGemm {
  int64_t rows;     // any number
  int64_t taps, k;  // k: whole words of 32 bits
  const T* const* at;
  int64_t step;
  const void* panel;
  const int64_t* places;  // [rows]: offset of each in y, and in the residual; negative: not stored
  int64_t valid;          // columns that are stored, from 1 to `columns`
  PrefetchRange prefetch{};
};

// Panels [depth][columns] of pairs, transposed to [columns][row], of which `depth` are present, a multiple of 16.
struct TransposedPanels {
  int64_t count, depth;
  const Bf16Pair* data;
  int64_t row, step;  // pairs from one row to the next, and from one panel
};

// Capabilities::amx only.
struct AmxKernels {
  // `non_temporal`: as in IndirectGemm.
  void (*bf16)(const AmxGemm<Bf16>&, const Epilogue<Bf16>&, Bf16* y, bool non_temporal);
  void (*u8s8)(const AmxGemm<uint8_t>&, const Requantize&, const RequantizeOutput& y);
  // Transposes one panel [depth][columns]; rows of `to` are `row` pairs apart.
  void (*transpose_panel)(int64_t depth, const Bf16Pair* panel, Bf16Pair* to, int64_t row);
  // y [count * columns][columns] = or += the transposed panels times panel b [depth][columns].
  void (*transposed_a)(const TransposedPanels&, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                       const PrefetchRange&);
};

}  // namespace dtrain::cpu
