// Gradients of convolutions from the pixels of dy that are not zero, against the direct sums in double precision.
#include "libdtrain/cpu/few_pixels.h"

#include <cmath>

#include "libdtrain/cpu/gemm_wgrad.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/for_each_tap.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// n, h, w, c, k, r, s, p, q, stride, dilation, padding.
cpu::ConvShape conv_shape(int64_t n, int64_t h, int64_t w, int64_t c, int64_t k, int64_t side, int64_t stride,
                          int64_t dilation, int64_t padding) {
  const auto out = [&](int64_t in) { return (in + 2 * padding - dilation * (side - 1) - 1) / stride + 1; };
  return {n,      h,      w,        c,        k,       side,    side,    out(h),  out(w),
          stride, stride, dilation, dilation, padding, padding, padding, padding, 1};
}

// Every `step`-th pixel has a gradient, which alone in the last channel differs from zero where `last` is set.
Floats sparse_gradient(const cpu::ConvShape& o, int64_t step, bool last = false) {
  Floats dy = drawn(o.n * o.p * o.q * o.k, 2);
  for (int64_t i = 0; i < static_cast<int64_t>(dy.size()); ++i)
    if (i / o.k % step != step - 1 || (last && i % o.k != o.k - 1)) dy[static_cast<size_t>(i)] = 0;
  return dy;
}

// Adds to dx and dw, [k, r, s, c].
void direct_sums(const cpu::ConvShape& o, const Floats& x, const Floats& dy, const Floats& w, Doubles& dx,
                 Doubles& dw) {
  for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t k = 0; k < o.k; ++k)
      for (int64_t c = 0; c < o.c; ++c) {
        const auto filter = static_cast<size_t>((k * o.r * o.s + tap) * o.c + c);
        const auto pixel = static_cast<size_t>(in * o.c + c);
        const double gradient = dy[static_cast<size_t>(out * o.k + k)];
        dw[filter] += gradient * x[pixel];
        dx[pixel] += gradient * w[filter];
      }
  });
}

void expect_near(const Floats& values, const Doubles& expected) {
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 5e-5) << i;
}

class FewPixels : public testing::TestWithParam<cpu::ConvShape> {};

TEST_P(FewPixels, GiveTheSumsOfAll) {
  const cpu::ConvShape& o = GetParam();
  const Floats x = drawn(o.n * o.h * o.w * o.c, 1), w = drawn(o.k * o.r * o.s * o.c, 3), dy = sparse_gradient(o, 11);
  for (const CpuIsa isa : instruction_sets())
    for (const bool add : {false, true}) {
      SCOPED_TRACE(name_of(isa));
      const auto context = context_of(isa);
      const auto pixels = cpu::few_pixels(*context, o, dy.data());
      ASSERT_TRUE(pixels);
      EXPECT_EQ(pixels->front(), 10);
      // NAN shows what was not written.
      const float before = add ? 0.5f : NAN;
      Floats dx(x.size(), before), dw(w.size(), before);
      Doubles dx_sums(x.size(), add ? 0.5 : 0), dw_sums(w.size(), add ? 0.5 : 0);
      direct_sums(o, x, dy, w, dx_sums, dw_sums);
      cpu::few_pixels_dgrad(*context, o, *pixels, dy.data(), w.data(), dx.data(), add);
      cpu::gemm_wgrad(*context, o, x.data(), dy.data(), dw.data(), add, &*pixels);
      expect_near(dx, dx_sums);
      expect_near(dw, dw_sums);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FewPixels,
                         testing::Values(conv_shape(2, 30, 50, 64, 96, 3, 1, 1, 1),  // several passes
                                         conv_shape(1, 17, 12, 224, 224, 1, 1, 1, 0),
                                         conv_shape(3, 29, 20, 64, 96, 3, 2, 1, 1),
                                         conv_shape(1, 19, 21, 96, 64, 3, 1, 2, 0)));

TEST(FewPixels, ThereMayBeNone) {
  const cpu::ConvShape o = conv_shape(1, 12, 12, 64, 80, 3, 1, 1, 1);
  const Floats x(static_cast<size_t>(o.h * o.w * o.c), 1), w(static_cast<size_t>(o.k * 9 * o.c), 1);
  const Floats dy(static_cast<size_t>(o.p * o.q * o.k), 0);
  const auto context = context_of(CpuIsa::avx2);
  const auto pixels = cpu::few_pixels(*context, o, dy.data());
  ASSERT_TRUE(pixels && pixels->empty());
  Floats dx(x.size(), NAN), dw(w.size(), NAN), kept(w.size(), 0.5f);
  cpu::few_pixels_dgrad(*context, o, *pixels, dy.data(), w.data(), dx.data(), false);
  cpu::gemm_wgrad(*context, o, x.data(), dy.data(), dw.data(), false, &*pixels);
  cpu::gemm_wgrad(*context, o, x.data(), dy.data(), kept.data(), true, &*pixels);
  EXPECT_EQ(dx, Floats(x.size(), 0));
  EXPECT_EQ(dw, Floats(w.size(), 0));
  EXPECT_EQ(kept, Floats(w.size(), 0.5f));
}

TEST(FewPixels, AreCountedByAllOfTheirChannels) {
  const auto context = context_of(CpuIsa::avx2);
  const cpu::ConvShape o = conv_shape(1, 40, 40, 64, 80, 3, 1, 1, 1);
  EXPECT_EQ(cpu::few_pixels(*context, o, sparse_gradient(o, 9, true).data())->size(), 1600u / 9);
  EXPECT_FALSE(cpu::few_pixels(*context, o, sparse_gradient(o, 7, true).data()));
  EXPECT_FALSE(cpu::few_pixels(*context, o, sparse_gradient(o, 1).data()));
}

TEST(FewPixels, AreLookedForWhereTheKernelsServe) {
  const auto context = context_of(CpuIsa::avx2);
  const auto found = [&](const cpu::ConvShape& o) {
    return cpu::few_pixels(*context, o, Floats(static_cast<size_t>(o.n * o.p * o.q * o.k), 0).data()).has_value();
  };
  EXPECT_TRUE(found(conv_shape(1, 12, 12, 64, 80, 3, 1, 1, 1)));
  EXPECT_FALSE(found(conv_shape(1, 12, 12, 64, 72, 3, 1, 1, 1)));  // not whole vectors
  EXPECT_FALSE(found(conv_shape(1, 12, 12, 16, 16, 3, 1, 1, 1)));  // not worth it
}

}  // namespace
}  // namespace dtrain
