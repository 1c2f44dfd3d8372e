// GEMM micro-kernels for f32 and bf16. B is packed once into micro-panels of `columns` columns, two vectors wide, the
// inner dimension first: [k][columns]. An element of the result is one sum in the order of the inner dimension.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dtrain/core/float16.h"
#include "libdtrain/cpu/kernels/prefetch.h"

namespace dtrain::cpu {

inline constexpr int kMaxTileRows = 12, kMaxTileColumns = 32;  // of any instruction set

// Sums over each column of the stored results y: of y - pivot and of its square, added to what is there.
struct ColumnStatistics {
  const float* pivot = nullptr;  // null: no statistics
  float *sum = nullptr, *square = nullptr;
};

// Applied to each element as it is stored: y = act(sum + bias + residual). T is the type of y, float or Bf16.
template <class T>
struct Epilogue {
  const float* bias = nullptr;  // [valid columns]; null: none
  const T* residual = nullptr;  // rows as those of y, and possibly y itself; null: none
  bool relu = false;
  ColumnStatistics sums{};  // [columns], all of which are valid; of the values before rounding to T
};

// Elements of the inner dimension in a 32-bit word of packed B; a word's products are added by one instruction.
template <class T>
inline constexpr int64_t kPackFactor = 4 / sizeof(T);

// Indirect GEMM, for implicit-GEMM convolutions: the rows of A are given by an indirection buffer, as in XNNPACK. Row i
// of the result is the sum over `taps` runs of k elements, run t from at[t * row_step + i] + skip on, times the panel,
// [taps * k][columns] of float or [taps * k / 2][columns][2] of bf16, for an even k. The next panel's columns follow
// `panel_step` elements later.
template <class T>
struct IndirectGemm {
  int64_t rows, taps, k;  // at most `rows` of the kernel's block
  const T* const* at;
  int64_t row_step, skip = 0;
  const T* panel;
  int64_t panel_step = 0;
  T* y;
  const int64_t* places;  // offset of each row in y, and in the residual
  int64_t valid;          // columns that are stored, from 1 to those of `panels` panels
  Epilogue<T> end{};
  bool non_temporal = false;  // non-temporal stores: rows of y are aligned to a vector, and all columns are valid
  PrefetchRange prefetch{};
};

// Elements 2 i and 2 i + 1 of the inner dimension, the first in the low half.
struct Bf16Pair {
  uint32_t bits;
};

// y[0..rows, 0..panels * columns] = or += a [rows, k] * b [k, panels * columns], for any number of rows. Word is float
// or Bf16Pair.
template <class Word>
struct StridedGemm {
  int64_t rows, k;
  const Word* a;
  int64_t a_stride;  // words from one row to the next; transposed: from one element of a row to the next
  const Word* b;
  int64_t b_stride;  // from one row to the next
  float* y;
  int64_t y_stride;
  bool add = false;
  int64_t panels = 1, panel_step = 0;  // panels of `columns` columns, and words from one to the next
  PrefetchRange prefetch{};
};

struct GemmKernels {
  int rows, columns;                                // of a register block
  int panels;                                       // that a call takes, at most
  void (*strided)(const StridedGemm<float>&);       // b_stride is `columns`
  void (*transposed_a)(const StridedGemm<float>&);  // `a` is [k, rows]
  void (*indirect)(const IndirectGemm<float>&);
  // Packs `rows` rows of `words` 32-bit words, `stride` bytes apart, into a panel [words][columns], zero-padded.
  void (*pack_b)(int64_t rows, int64_t words, const void* from, int64_t stride, void* panel);
  // Capabilities::bf16 only.
  void (*indirect_bf16)(const IndirectGemm<Bf16>&);
  void (*transposed_a_bf16)(const StridedGemm<Bf16Pair>&);  // k pairs
  // Packs one row of pairs (first[i], second[i]) into count / columns panels, `step` pairs apart.
  void (*interleave_pairs)(const Bf16* first, const Bf16* second, int64_t count, Bf16Pair* to, int64_t step);

  template <class T>
  auto gathered() const {
    if constexpr (std::is_same_v<T, Bf16>)
      return indirect_bf16;
    else
      return indirect;
  }
};

}  // namespace dtrain::cpu
