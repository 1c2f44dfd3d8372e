#include "libdtrain/cpu/kernels/epilogue.h"
#include "libdtrain/cpu/kernels/gemm.inl"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Dot products of pairs.
struct Bf16Arithmetic {
  using A = Bf16;
  using Word = Bf16Pair;
  using Accumulator = Floats;
  template <int R, int P>
  using Output = FloatOutput<R, P, Bf16>;
  static constexpr int64_t kPrefetchStep = 32;

  [[gnu::always_inline]] static Pairs load_b(const void* from) { return load_unaligned<Pairs>(from); }
  [[gnu::always_inline]] static Pairs broadcast_a(const void* word) { return broadcast_pair(word); }
  [[gnu::always_inline]] static void multiply_add(Floats& sum, Pairs a, Pairs b) { sum = dot_pairs(sum, a, b); }
};

void interleave_pairs(const Bf16* first, const Bf16* second, int64_t count, Bf16Pair* to, int64_t step) {
  const PairInterleaver interleave;
  for (int64_t i = 0; i < count; i += kColumns, to += step) interleave(first + i, second + i, to);
}

}  // namespace

void add_gemm_bf16(Kernels& kernels) {
  kernels.capabilities.bf16 = true;
  GemmKernels& gemm = kernels.gemm;
  gemm.indirect_bf16 = indirect<Bf16Arithmetic>;
  gemm.transposed_a_bf16 = strided<true, Bf16Arithmetic>;
  gemm.interleave_pairs = interleave_pairs;
}

}  // namespace dtrain::cpu::DT_ISA
