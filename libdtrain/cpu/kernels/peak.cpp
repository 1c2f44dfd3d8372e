#include "libdtrain/cpu/kernels/peak.h"

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Enough independent sums for two FMA units with a latency of five cycles, in the sixteen registers of AVX2.
constexpr int kSums = 12;

// Applies next() `rounds` times to each sum, which starts at its index; returns the total of their first lanes.
template <class Next>
[[gnu::always_inline]] inline float sum_after(int64_t rounds, const Next& next) {
  Floats sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + static_cast<float>(i);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = next(sums[i]);
      keep(sums[i]);
    }
  Floats sum{};
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sum += sums[i];
  return sum[0];
}

double multiply_add(int64_t rounds, float* sink) {
  const Floats factor = Floats{} + 0.5f, addend = Floats{} + 1.0f;
  *sink = sum_after(rounds, [&](const Floats& sum) { return sum * factor + addend; });
  return 2.0 * kSums * kLanes * static_cast<double>(rounds);
}

#ifdef DT_BF16
double multiply_add_pairs(int64_t rounds, float* sink) {
  constexpr uint32_t kHalves = 0x3f003f00;  // 0.5 in bf16, twice
  const Pairs halves = broadcast_pair(&kHalves);
  *sink = sum_after(rounds, [&](const Floats& sum) { return dot_pairs(sum, halves, halves); });
  return 4.0 * kSums * kLanes * static_cast<double>(rounds);
}
#endif

}  // namespace

void add_peak(Kernels& kernels) {
  kernels.peak.multiply_add = multiply_add;
#ifdef DT_BF16
  kernels.peak.multiply_add_pairs = multiply_add_pairs;
#endif
}

}  // namespace dtrain::cpu::DT_ISA
