#include "libdtrain/cpu/kernels/peak.h"

#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Enough sums for two units of a latency of up to five cycles, in the sixteen registers of AVX2.
constexpr int kSums = 12;

double multiply_add(int64_t rounds, float* sink) {
  const Floats factor = Floats{} + 0.5f, addend = Floats{} + 1.0f;
  Floats sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + static_cast<float>(i);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = sums[i] * factor + addend;
      asm("" : "+x"(sums[i]));  // each is computed, and none becomes an element of a wider loop
    }
  Floats sum{};
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sum += sums[i];
  *sink = sum[0];
  return 2.0 * kSums * kLanes * static_cast<double>(rounds);
}

}  // namespace

PeakKernels peak_kernels() { return {multiply_add}; }

}  // namespace dtrain::cpu::DT_ISA
