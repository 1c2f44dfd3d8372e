#include "libdtrain/cpu/kernels/gemm_u8s8.h"

#include "libdtrain/cpu/kernels/gemm.inl"
#include "libdtrain/cpu/kernels/requantize.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

// Dot products of quads, in 32 bits.
struct U8S8Arithmetic {
  using A = uint8_t;
  using Accumulator = Ints;
  template <int R, int P>
  using Output = RequantizedOutput<R, P>;
  static constexpr int64_t kPrefetchStep = 16;

  [[gnu::always_inline]] static Ints load_b(const int8_t* from) { return load_unaligned<Ints>(from); }
  [[gnu::always_inline]] static Ints broadcast_a(const uint8_t* word) {
    return broadcast(load_unaligned<int32_t>(word));
  }
  [[gnu::always_inline]] static void multiply_add(Ints& sum, Ints a, Ints b) { sum = dot_quads(sum, a, b); }
};

void quantize(int64_t count, const float* x, float scale, float zero, uint8_t* to) {
  const Floats factor = broadcast(scale), summand = broadcast(zero);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, multiply_add(load(x + i), factor, summand));
  if (i < count) store_first(to + i, multiply_add(load_first(x + i, count - i), factor, summand), count - i);
}

}  // namespace

void add_gemm_u8s8(Kernels& kernels) {
  kernels.gemm_u8s8 = {kRows, kColumns, kPanels, kMaxPairSum, indirect<U8S8Arithmetic>, quantize};
}

}  // namespace dtrain::cpu::DT_ISA
