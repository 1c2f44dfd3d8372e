// The operand A of a GEMM, as micro-kernels read it: row by row through an indirection buffer.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain::cpu {

// A [rows, taps * run]. Each row is the concatenation of `taps` contiguous runs of `run` elements, which lie anywhere
// in memory: a strided matrix has one tap, and an im2col view of images (implicit GEMM) has one for each position of
// the kernel.
template <class T>
struct MatrixA {
  int64_t rows, taps, run;
  int64_t channels;               // elements that one more row adds to the working set
  int64_t row_stride;             // elements between neighbouring rows in memory
  const T* contiguous = nullptr;  // where not null, row i is at contiguous + i * channels, and taps is 1
  // Writes the address of tap t of row first + i to at[t * step + i], for i < count.
  std::function<void(int64_t first, int64_t count, int64_t step, const T** at)> fill_indirection;

  int64_t depth() const { return taps * run; }
};

// A row-major matrix [rows, depth] whose rows are `stride` elements apart.
template <class T>
MatrixA<T> strided_matrix(const T* a, int64_t rows, int64_t depth, int64_t stride) {
  const auto fill = [a, stride](int64_t first, int64_t count, int64_t, const T** at) {
    for (int64_t i = 0; i < count; ++i) at[i] = a + (first + i) * stride;
  };
  return {rows, 1, depth, depth, stride, stride == depth ? a : nullptr, fill};
}

}  // namespace dtrain::cpu
