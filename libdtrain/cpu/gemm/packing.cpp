#include "libdtrain/cpu/gemm/packing.h"

#include <algorithm>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {

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
  const int64_t step = depth * gemm.columns;  // from one panel to the next
  parallel_ranges(
      depth / kPackFactor<T>,
      [&](int64_t begin, int64_t end) {
        for (int64_t word = begin; word < end; ++word) {
          const T* const first = row(word * kPackFactor<T>);
          const T* const second = kPackFactor<T> > 1 ? row(word * kPackFactor<T> + 1) : first;
          pack_row(gemm, n, first, second, panels + word * gemm.columns * kPackFactor<T>, step);
        }
      },
      n);
}

template void pack_transposed(const Context&, int64_t, int64_t, const float*, float*);
template void pack_transposed(const Context&, int64_t, int64_t, const Bf16*, Bf16*);
template void pack_rows(const Context&, int64_t, int64_t, const std::function<const float*(int64_t)>&, float*);
template void pack_rows(const Context&, int64_t, int64_t, const std::function<const Bf16*(int64_t)>&, Bf16*);

}  // namespace dtrain::cpu
