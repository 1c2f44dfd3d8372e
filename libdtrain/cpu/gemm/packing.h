// Packing of the operand B of a GEMM into micro-panels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

#include "libdtrain/cpu/kernels/gemm.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// A depth rounded up to what panels of T hold side by side: pairs of bf16.
template <class T>
constexpr int64_t round_up_to_pack(int64_t depth) {
  return (depth + kPackFactor<T> - 1) / kPackFactor<T> * kPackFactor<T>;
}

// Packs one row of B, or for bf16 the pairs of two rows, `first` and `second`, of n elements: a row of each panel,
// `step` elements apart. The columns that the last panel lacks are zero.
template <class T>
void pack_row(const GemmKernels& gemm, int64_t n, const T* first, const T* second, T* to, int64_t step) {
  constexpr int64_t kAtOnce = 8;
  const int64_t width = gemm.columns, rest = n % width, whole = n - rest;
  if constexpr (std::is_same_v<T, Bf16>) {
    gemm.interleave_pairs(first, second, whole, reinterpret_cast<Bf16Pair*>(to), step / kPackFactor<T>);
  } else {
    T* panel = to;
    for (int64_t i = 0; i < whole; i += width, panel += step)
      for (int64_t j = 0; j < width; j += kAtOnce) std::memcpy(panel + j, first + i + j, kAtOnce * sizeof(T));
  }
  if (rest == 0) return;
  T last[2][kMaxTileColumns] = {};
  std::copy_n(first + whole, rest, last[0]);
  std::copy_n(second + whole, rest, last[1]);
  pack_row(gemm, width, last[0], last[1], to + whole / width * step, step);
}

// Elements of the panels of a B [depth, n]: [n / width][depth][width], the last panel filled up, where width is
// GemmKernels::columns.
int64_t packed_elements(const Context&, int64_t n, int64_t depth);

// Packs B, given by its transpose bt [n, depth], as weights are. `depth` is a multiple of kPackFactor. The columns that
// the last panel lacks are zero. T is float or Bf16.
template <class T>
void pack_transposed(const Context&, int64_t n, int64_t depth, const T* bt, T* panels);

// Packs B, given row by row: row(i), i < depth, is the address of n elements. The same layout and conditions.
template <class T>
void pack_rows(const Context&, int64_t n, int64_t depth, const std::function<const T*(int64_t)>& row, T* panels);

}  // namespace dtrain::cpu
