// The micro-kernels of matrix products whose right-hand side is packed once and used often. It comes in panels of as
// many columns as two vectors hold, `columns` in all instruction sets' tables, the inner dimension first: [k][columns].
// An element of the result is one sum in the order of the inner dimension.
#pragma once

#include <cstdint>

#include "libdtrain/core/float16.h"

namespace dtrain::cpu {

inline constexpr int kMostTileRows = 12, kMostTileColumns = 32;  // of any instruction set

// What is done to an element before it is stored: y = act(sum + bias + residual). T is y's type, float or Bf16.
template <class T>
struct EndOf {
  const float* bias = nullptr;  // [valid columns]; null: none
  const T* residual = nullptr;  // rows as far apart as those of y, and possibly y itself; null: none
  bool relu = false;
};
using ProductEnd = EndOf<float>;

// Rows of the left-hand side that lie anywhere, as the windows of a convolution do: row i of the result is the sum over
// `taps` runs of k floats each, of run t from at[t * row_step + i] on, times the panel [taps * k][columns].
struct GatheredRows {
  int64_t rows, taps, k;  // at most `rows` of a tile
  const float* const* at;
  int64_t row_step;
  const float* panel;
  float* y;
  int64_t y_stride;
  int64_t valid;  // columns that are stored, from 1 to `columns`
  ProductEnd end{};
  const float* ahead = nullptr;  // what is read soon, and brought into the cache meanwhile: `ahead_count` floats
  int64_t ahead_count = 0;
};

// Elements 2 i and 2 i + 1 of the inner dimension, the first in the low half.
struct Bf16Pair {
  uint32_t bits;
};

struct ProductKernels {
  int rows, columns;  // of a tile
  // y[0..rows, 0..columns] = or += a [rows, k] * panel [k, columns], for any number of rows. Those of `a` are
  // `a_stride` floats apart, those of y `y_stride`.
  void (*rows_by_panel)(int64_t rows, int64_t k, const float* a, int64_t a_stride, const float* panel, float* y,
                        int64_t y_stride, bool add);
  // y[0..columns, 0..columns] = or += a^T b for panels a and b.
  void (*panel_by_panel)(int64_t k, const float* a, const float* b, float* y, int64_t y_stride, bool add);
  void (*gathered_rows)(const GatheredRows&);
  // The next two are null where the set has no products of bf16. As panel_by_panel, for panels of `k` pairs.
  void (*pairs_by_pairs)(int64_t k, const Bf16Pair* a, const Bf16Pair* b, float* y, int64_t y_stride,
                         bool add) = nullptr;
  // A row of count / columns panels, which are `step` pairs apart: those of the elements of `first` and `second`.
  void (*join_pairs)(const Bf16* first, const Bf16* second, int64_t count, Bf16Pair* to, int64_t step) = nullptr;
};

}  // namespace dtrain::cpu
