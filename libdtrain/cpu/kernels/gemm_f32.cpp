#include "libdtrain/cpu/kernels/epilogue.h"
#include "libdtrain/cpu/kernels/gemm.inl"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

struct F32Arithmetic {
  using A = float;
  using Word = float;
  using Accumulator = Floats;
  template <int R, int P>
  using Output = FloatOutput<R, P, float>;
  static constexpr int64_t kPrefetchStep = 32;

  [[gnu::always_inline]] static Floats load_b(const float* from) { return load(from); }
  [[gnu::always_inline]] static Floats broadcast_a(const float* word) { return broadcast(*word); }
  [[gnu::always_inline]] static void multiply_add(Floats& sum, Floats a, Floats b) { sum += a * b; }
};

void pack_b(int64_t rows, int64_t words, const void* from, int64_t stride, void* panel) {
  constexpr int kBlock = 8;
  using Row = VectorOf<kBlock>::Type;
  const auto at = [&](int64_t row, int64_t word) { return static_cast<const char*>(from) + row * stride + 4 * word; };
  float* const to = static_cast<float*>(panel);
  int64_t word = 0;
  for (; word + kBlock <= words; word += kBlock)
    for (int64_t row = 0; row < kColumns; row += kBlock) {
      Row block[kBlock];
#pragma GCC unroll 8
      for (int i = 0; i < kBlock; ++i) block[i] = row + i < rows ? load_unaligned<Row>(at(row + i, word)) : Row{};
      transpose(block);
#pragma GCC unroll 8
      for (int i = 0; i < kBlock; ++i) store(to + (word + i) * kColumns + row, block[i]);
    }
  for (; word < words; ++word)
    for (int64_t row = 0; row < kColumns; ++row)
      to[word * kColumns + row] = row < rows ? load_unaligned<float>(at(row, word)) : 0;
}

}  // namespace

void add_gemm_f32(Kernels& kernels) {
  GemmKernels& gemm = kernels.gemm;
  gemm.rows = kRows, gemm.columns = kColumns, gemm.panels = kPanels;
  gemm.strided = strided<false, F32Arithmetic>;
  gemm.transposed_a = strided<true, F32Arithmetic>;
  gemm.indirect = indirect<F32Arithmetic>;
  gemm.pack_b = pack_b;
}

}  // namespace dtrain::cpu::DT_ISA
