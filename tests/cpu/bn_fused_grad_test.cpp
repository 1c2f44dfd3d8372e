// Both gradients of a 1x1 convolution fused with the batch norm after it: the bits of the gradients from a dy in
// memory, which other tests compare with the direct sum.
#include "libdtrain/cpu/conv/bn_fused_grad.h"

#include <atomic>
#include <vector>

#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/gemm/gemm_tn.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/ops/conv2d_kernels.h"
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
  const std::vector<T> before = elements_of<T>(std::vector<float>(x.size(), add ? 0.25f : NAN));
  // Tensors: only aligned results are written past the caches.
  const Tensor dx = context.empty({std::ssize(x)}, dtype_of<T>()), blocks_dx = context.empty(dx.shape(), dx.dtype());
  for (const Tensor& one : {dx, blocks_dx}) context.upload(before.data(), one);
  cpu::gemm_tn<T>(context, cpu::Im2colView<T>{o, x.data()}.matrix(nullptr), {dy.data(), o.k}, dw.data(), add);
  cpu::ImplicitGemm<T>::dgrad(context, o, {.w = w.data(), .dy = dy.data(), .dx = dx.data<T>(), .add = add});
  std::atomic<int64_t> made = 0;
  const cpu::BlockwiseGradient<T> source{dy.data(), dy.data(), [&](int64_t begin, int64_t end, T* to) {
                                           EXPECT_LE(end - begin, cpu::gemm_tn_max_block<T>());
                                           made += end - begin;
                                           std::copy_n(dy.data() + begin * o.k, (end - begin) * o.k, to);
                                         }};
  cpu::bn_fused_grads(context, o, x.data(), w.data(), source, blocks_dw.data(), add, blocks_dx.data<T>(), add);
  EXPECT_EQ(made, pixels);
  EXPECT_EQ(dw, blocks_dw);
  EXPECT_EQ(to_host(context, dx).values, to_host(context, blocks_dx).values);
}

class BnFusedGrads : public testing::TestWithParam<cpu::ConvShape> {};

TEST_P(BnFusedGrads, HaveTheBitsOfThoseFromMemory) {
  const cpu::ConvShape& o = GetParam();
  for (const CpuIsa isa : instruction_sets()) {
    int of_bf16 = 0;
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(concat(name_of(isa), ", ", threads, " threads"));
      const auto context = context_of(isa, threads);
      const bool bf16 = cpu::bn_fused_grads_declined(*context, o, DType::bf16) == nullptr;
      of_bf16 += bf16;
      ASSERT_FALSE(cpu::bn_fused_grads_declined(*context, o, DType::f32));
      for (const bool add : {false, true}) {
        expect_equal_gradients<float>(*context, o, add);
        if (bf16) expect_equal_gradients<Bf16>(*context, o, add);
      }
    }
    const cpu::Capabilities has = cpu::kernels_of(isa).capabilities;
    EXPECT_EQ(of_bf16 > 0, has.bf16 && !has.amx) << name_of(isa);  // AMX multiplies faster than what is saved
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BnFusedGrads,
                         testing::Values(pointwise(3, 13, 11, 64, 256),      // pixels are odd, blocks several
                                         pointwise(2, 15, 16, 128, 512),     // in whole blocks
                                         pointwise(2, 33, 31, 96, 192),      // channels are no power of two
                                         pointwise(1, 129, 128, 64, 256)));  // dx is stored past the caches

TEST(BnFusedGrads, PayWhereDyIsTheLargerOne) {
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    EXPECT_FALSE(cpu::bn_fused_grads_declined(*context, pointwise(16, 56, 56, 64, 256), DType::f32)) << name_of(isa);
    EXPECT_TRUE(cpu::bn_fused_grads_declined(*context, pointwise(16, 56, 56, 256, 64), DType::f32));
    EXPECT_TRUE(cpu::bn_fused_grads_declined(*context, pointwise(16, 7, 7, 512, 2048), DType::f32));  // sums are many
    cpu::ConvShape strided = pointwise(16, 56, 56, 64, 256);
    strided.p = strided.q = 28, strided.stride_h = strided.stride_w = 2;
    EXPECT_TRUE(cpu::bn_fused_grads_declined(*context, strided, DType::f32));
  }
}

}  // namespace
}  // namespace dtrain
