// The micro-kernels of matrix products whose right-hand side is packed once and used often. It comes in panels of as
// many columns as two vectors hold, `columns` in all instruction sets' tables, the inner dimension first: [k][columns].
// An element of the result is one sum in the order of the inner dimension.
#pragma once

#include <cstdint>
#include <type_traits>

#include "libdtrain/core/float16.h"
#include "libdtrain/cpu/kernels/prefetch.h"

namespace dtrain::cpu {

inline constexpr int kMaxTileRows = 12, kMaxTileColumns = 32;  // of any instruction set

// Where the results y of a column are added up: y - pivot and its square, on top of what is there.
struct ColumnStatistics {
  const float* pivot = nullptr;  // null: nowhere
  float *sum = nullptr, *square = nullptr;
};

// What is done to an element before it is stored: y = act(sum + bias + residual). T is y's type, float or Bf16.
template <class T>
struct Epilogue {
  const float* bias = nullptr;  // [valid columns]; null: none
  const T* residual = nullptr;  // rows as those of y, and possibly y itself; null: none
  bool relu = false;
  ColumnStatistics sums{};  // [columns], which are then all valid; of the values before they are rounded to T
};

// Elements of the inner dimension that lie side by side in a panel of T, and whose products go into one sum at a time.
template <class T>
inline constexpr int64_t kPackFactor = std::is_same_v<T, Bf16> ? 2 : 1;

// Rows of the left-hand side that lie anywhere, as the windows of a convolution do: row i of the result is the sum over
// `taps` runs of k elements each, of run t from at[t * row_step + i] + skip on, times the panel, [taps * k][columns] of
// floats or [taps * k / 2][columns][2] of bf16, for an even k. Further columns are those of another panel, `panel_step`
// elements after it.
template <class T>
struct IndirectGemm {
  int64_t rows, taps, k;  // at most `rows` of a tile
  const T* const* at;
  int64_t row_step, skip = 0;
  const T* panel;
  int64_t panel_step = 0;
  T* y;
  const int64_t* places;  // elements from y, and from a residual, to each row
  int64_t valid;          // columns that are stored, from 1 to those of `panels` panels
  Epilogue<T> end{};
  bool non_temporal =
      false;  // y is stored past the caches; every row of it is aligned to a vector, and all columns are valid
  PrefetchRange prefetch{};
};

// Elements 2 i and 2 i + 1 of the inner dimension, the first in the low half.
struct Bf16Pair {
  uint32_t bits;
};

// y[0..rows, 0..panels * columns] = or += a [rows, k] * b [k, panels * columns], for any number of rows.
template <class Word>
struct StridedGemm {
  int64_t rows, k;
  const Word* a;
  int64_t a_stride;  // words from one row to the next, or, where `a` lies by columns, from one element to the next
  const Word* b;
  int64_t b_stride;  // from one row to the next
  float* y;
  int64_t y_stride;
  bool add = false;
  int64_t panels = 1, panel_step = 0;  // how many `columns` columns of b are taken, and from one of them to the next
  PrefetchRange prefetch{};
};

struct GemmKernels {
  int rows, columns;                                // of a tile
  int panels;                                       // that kernels of floats take at a time, at most
  void (*strided)(const StridedGemm<float>&);       // b_stride is `columns`
  void (*transposed_a)(const StridedGemm<float>&);  // `a` lies by columns
  void (*indirect)(const IndirectGemm<float>&);
  // A panel [words][columns] of `rows` rows of words of 32 bits, `stride` bytes apart; zeros in the columns beyond.
  void (*pack_b)(int64_t rows, int64_t words, const void* from, int64_t stride, void* panel);
  // The rest is null where the set has no products of bf16.
  void (*indirect_bf16)(const IndirectGemm<Bf16>&) = nullptr;
  // As columns_by_panels, for `k` pairs.
  void (*transposed_a_bf16)(const StridedGemm<Bf16Pair>&) = nullptr;
  // A row of count / columns panels, which are `step` pairs apart: those of the elements of `first` and `second`.
  void (*interleave_pairs)(const Bf16* first, const Bf16* second, int64_t count, Bf16Pair* to, int64_t step) = nullptr;

  template <class T>
  auto gathered() const {
    if constexpr (std::is_same_v<T, Bf16>)
      return indirect_bf16;
    else
      return indirect;
  }
};

}  // namespace dtrain::cpu
