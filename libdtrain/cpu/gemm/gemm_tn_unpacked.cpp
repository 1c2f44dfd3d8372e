#include "libdtrain/cpu/gemm/gemm_tn.h"

#include <algorithm>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/gemm/prefetch_schedule.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {

bool needs_no_packing(const Context& context, const GemmTnShape& o) {
  constexpr int64_t kMaxC = 32768;
  const GemmKernels& gemm = context.kernels().gemm;
  return gemm.panels > 1 && o.taps == 1 && o.contiguous && o.run % (gemm.panels * gemm.columns) == 0 &&
         o.run * o.n <= kMaxC;
}

// Each thread sums its own rows, a block at a time, which stays in its cache while the next one is prefetched.
void gemm_tn_unpacked(Context& context, const MatrixA<float>& a, const MatrixB<float>& b, float* c, bool add) {
  constexpr int64_t kRows = 60;  // of C at a time: whole tiles
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const GemmKernels& gemm = context.kernels().gemm;
  const int64_t wide = gemm.panels * gemm.columns, columns = a.run, count = b.n * columns;
  const int64_t parts = (b.n + kRows - 1) / kRows * (columns / wide);
  const int64_t of_b = parts > 1 ? std::clamp<int64_t>(parts * b.n / (b.n + columns), 1, parts - 1) : 1;
  const ChunkedRange chunks(context.threads(), a.rows, 2 * kWideDepth);
  const Scratch<float> sums(context, chunks.count() * count);
  parallel_chunks(chunks, [&](int64_t thread, int64_t chunk, int64_t begin, int64_t end) {
    float* const own = sums.data() + chunk * count;
    if (begin == end) std::fill_n(own, count, 0.0f);
    for (int64_t first = begin; first < end; first += kWideDepth) {
      const int64_t depth = std::min(kWideDepth, end - first), next = first + depth;
      const int64_t later = std::min(kWideDepth, end - next);
      const float* const rows = b.rows(thread, first, next);
      const TwoRangeSchedule prefetch{
          PrefetchSchedule({b.data + next * b.n, later * b.n * kFloat}, of_b),
          PrefetchSchedule({a.contiguous + next * columns, parts > 1 ? later * columns * kFloat : 0}, parts - of_b),
          of_b};
      int64_t part = 0;
      for (int64_t column = 0; column < columns; column += wide)
        for (int64_t k = 0; k < b.n; k += kRows, ++part)
          gemm.transposed_a({.rows = std::min(kRows, b.n - k),
                             .k = depth,
                             .a = rows + k,
                             .a_stride = b.n,
                             .b = a.contiguous + first * columns + column,
                             .b_stride = columns,
                             .y = own + k * columns + column,
                             .y_stride = columns,
                             .add = first > begin,
                             .panels = gemm.panels,
                             .panel_step = gemm.columns,
                             .prefetch = prefetch[part]});
    }
  });
  parallel_parts(context, count, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float sum = 0;
      for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) sum += sums.data()[chunk * count + i];
      c[i] = add ? c[i] + sum : sum;
    }
  });
}

}  // namespace dtrain::cpu
