#include "libdtrain/cpu/gemm/packing.h"

#include <algorithm>

#include "libdtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// Row `i` of words of B: n elements, or n pairs of two rows; the panels' rows are `step` elements apart.
template <class T>
void pack_row_of_words(const GemmKernels& gemm, int64_t n, const T* first, const T* second, T* to, int64_t step) {
  if constexpr (std::is_same_v<T, Bf16>)
    gemm.interleave_pairs(first, second, n, reinterpret_cast<Bf16Pair*>(to), step / kPackFactor<T>);
  else
    for (int64_t i = 0; i < n; i += gemm.columns) std::copy_n(first + i, gemm.columns, to + i / gemm.columns * step);
}

}  // namespace

int64_t packed_elements(const Context& context, int64_t n, int64_t depth) {
  const int64_t width = context.kernels().gemm.columns;
  return (n + width - 1) / width * width * depth;
}

template <class T>
void pack_transposed(const Context& context, int64_t n, int64_t depth, const T* bt, T* panels) {
  constexpr int64_t kPart = 512;  // words of a panel that one thread packs at a time
  const GemmKernels& gemm = context.kernels().gemm;
  const int64_t words = depth / kPackFactor<T>, parts = (words + kPart - 1) / kPart;
  const int64_t width = gemm.columns, count = (n + width - 1) / width;
#pragma omp parallel for schedule(static) num_threads(context.threads())
  for (int64_t item = 0; item < count * parts; ++item) {
    const int64_t panel = item / parts, word = item % parts * kPart;
    gemm.pack_b(std::min(width, n - panel * width), std::min(kPart, words - word),
                bt + panel * width * depth + word * kPackFactor<T>, depth * static_cast<int64_t>(sizeof(T)),
                panels + (panel * depth + word * kPackFactor<T>)*width);
  }
}

template <class T>
void pack_rows(const Context& context, int64_t n, int64_t depth, const std::function<const T*(int64_t)>& row,
               T* panels) {
  const GemmKernels& gemm = context.kernels().gemm;
  const int64_t width = gemm.columns, whole = n / width * width, rest = n - whole;
  const int64_t step = depth * width;  // from one panel to the next
  parallel_ranges(
      depth / kPackFactor<T>,
      [&](int64_t begin, int64_t end) {
        T last[2][kMaxTileColumns] = {};
        for (int64_t word = begin; word < end; ++word) {
          const T* const first = row(word * kPackFactor<T>);
          const T* const second = kPackFactor<T> > 1 ? row(word * kPackFactor<T> + 1) : first;
          T* const to = panels + word * width * kPackFactor<T>;
          pack_row_of_words(gemm, whole, first, second, to, step);
          if (rest == 0) continue;
          std::copy_n(first + whole, rest, last[0]);
          std::copy_n(second + whole, rest, last[1]);
          pack_row_of_words(gemm, width, last[0], last[1], to + whole / width * step, step);
        }
      },
      n);
}

template void pack_transposed(const Context&, int64_t, int64_t, const float*, float*);
template void pack_transposed(const Context&, int64_t, int64_t, const Bf16*, Bf16*);
template void pack_rows(const Context&, int64_t, int64_t, const std::function<const float*(int64_t)>&, float*);
template void pack_rows(const Context&, int64_t, int64_t, const std::function<const Bf16*(int64_t)>&, Bf16*);

}  // namespace dtrain::cpu
