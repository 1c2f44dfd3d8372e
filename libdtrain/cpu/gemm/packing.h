// Packing of the operand B of a GEMM into micro-panels.
#pragma once

#include <cstdint>
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
