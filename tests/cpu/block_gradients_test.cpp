// Both gradients of a 1x1 convolution by blocks of pixels: the bits of those that read all of dy from memory, which
// other tests hold against the direct sum.
#include "libdtrain/cpu/block_gradients.h"

#include <atomic>
#include <vector>

#include "libdtrain/cpu/gathered_conv.h"
#include "libdtrain/cpu/gemm_wgrad.h"
#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

cpu::ConvShape pointwise(int64_t n, int64_t h, int64_t w, int64_t c, int64_t k) {
  return {n, h, w, c, k, 1, 1, h, w, 1, 1, 1, 1, 0, 0, 0, 0, 1};
}

template <class T>
void expect_equal_gradients(Context& context, const cpu::ConvShape& o, bool add) {
  const int64_t pixels = o.n * o.h * o.w;
  const std::vector<T> x = elements_of<T>(drawn(pixels * o.c, 1)), w = elements_of<T>(drawn(o.k * o.c, 2)),
                       dy = elements_of<T>(drawn(pixels * o.k, 3));
  // Where they are stored, NAN shows what was not written.
  std::vector<float> dw(static_cast<size_t>(o.k * o.c), add ? 0.5f : NAN), blocks_dw = dw;
  std::vector<T> dx = elements_of<T>(std::vector<float>(x.size(), add ? 0.25f : NAN)), blocks_dx = dx;
  cpu::gemm_wgrad(context, o, x.data(), dy.data(), dw.data(), add);
  cpu::gathered_dgrad(context, o, dy.data(), w.data(), dx.data(), add);
  std::atomic<int64_t> made = 0;
  const cpu::BlockSource<T> source{dy.data(), dy.data(), [&](int64_t begin, int64_t end, T* to) {
                                     EXPECT_LE(end - begin, cpu::most_pixels_of_block<T>());
                                     made += end - begin;
                                     std::copy_n(dy.data() + begin * o.k, (end - begin) * o.k, to);
                                   }};
  cpu::block_gradients(context, o, x.data(), w.data(), source, blocks_dw.data(), add, blocks_dx.data(), add);
  EXPECT_EQ(made, pixels);
  EXPECT_EQ(dw, blocks_dw);
  EXPECT_EQ(values_of(dx), values_of(blocks_dx));
}

class BlockGradients : public testing::TestWithParam<cpu::ConvShape> {};

TEST_P(BlockGradients, HaveTheBitsOfThoseThatReadMemory) {
  const cpu::ConvShape& o = GetParam();
  for (const CpuIsa isa : instruction_sets())
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(concat(name_of(isa), ", ", threads, " threads"));
      const auto context = context_of(isa, threads);
      for (const bool add : {false, true}) {
        if (cpu::block_gradients_pay(*context, o, DType::f32)) expect_equal_gradients<float>(*context, o, add);
        if (cpu::block_gradients_pay(*context, o, DType::bf16)) expect_equal_gradients<Bf16>(*context, o, add);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockGradients,
                         testing::Values(pointwise(3, 13, 11, 64, 256),     // pixels are odd, blocks several
                                         pointwise(2, 15, 16, 128, 512),    // in whole blocks
                                         pointwise(2, 33, 31, 96, 192),     // channels are no power of two
                                         pointwise(2, 97, 101, 64, 288)));  // dx is stored past the caches

TEST(BlockGradients, PayWhereDyIsTheLargerOne) {
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    EXPECT_TRUE(cpu::block_gradients_pay(*context, pointwise(16, 56, 56, 64, 256), DType::f32)) << name_of(isa);
    EXPECT_FALSE(cpu::block_gradients_pay(*context, pointwise(16, 56, 56, 256, 64), DType::f32));
    EXPECT_FALSE(cpu::block_gradients_pay(*context, pointwise(16, 7, 7, 512, 2048), DType::f32));  // sums are many
    cpu::ConvShape strided = pointwise(16, 56, 56, 64, 256);
    strided.p = strided.q = 28, strided.stride_h = strided.stride_w = 2;
    EXPECT_FALSE(cpu::block_gradients_pay(*context, strided, DType::f32));
  }
}

}  // namespace
}  // namespace dtrain
