#include "libdtrain/cpu/kernels/peak.h"

#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// Each of twelve sums s begins at its number and becomes s / 2 + 1 in a round, so that 2 + (number - 2) / 2^rounds is
// left of it.
TEST(PeakKernel, DoesTheOperationsThatItCounts) {
  for (const CpuIsa isa : instruction_sets()) {
    const double lanes = isa == CpuIsa::avx2 ? 8 : 16;
    float sink = 0;
    EXPECT_EQ(cpu::kernels_of(isa).peak.multiply_add(3, &sink), 2 * 12 * lanes * 3);
    EXPECT_EQ(sink, 24 + (66 - 24) / 8.0);
  }
}

// Each sum grows by two products of 0.5 and 0.5 in a round, and by 32 where tile registers add, which begin at zero.
TEST(PeakKernel, CountsTheProductsOfPairs) {
  for (const CpuIsa isa : instruction_sets_with(&cpu::Capabilities::bf16)) {
    const cpu::PeakKernels& kernels = cpu::kernels_of(isa).peak;
    float sink = 0;
    const bool tiles = cpu::kernels_of(isa).capabilities.amx;
    EXPECT_EQ(kernels.multiply_add_pairs(3, &sink), tiles ? 2 * 32 * 4 * 256 * 3 : 2 * 2 * 12 * 16 * 3);
    EXPECT_EQ(sink, tiles ? 4 * 3 * 8 : 66 + 12 * 3 * 0.5);
  }
}

}  // namespace
}  // namespace dtrain
