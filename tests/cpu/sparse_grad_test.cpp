// Row-sparse output gradients: how they are recognised, and that none at all is one. Their results are tested with
// those of all algorithms.
#include "libdtrain/cpu/conv/sparse_grad.h"

#include <algorithm>
#include <cmath>

#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Floats = std::vector<float>;

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

TEST(NonzeroRows, ThereMayBeNone) {
  const cpu::ConvShape o = conv_shape(1, 12, 12, 64, 80, 3, 1, 1, 1);
  const Floats x(static_cast<size_t>(o.h * o.w * o.c), 1), w(static_cast<size_t>(o.k * 9 * o.c), 1);
  const Floats dy(static_cast<size_t>(o.p * o.q * o.k), 0);
  const auto context = context_of(CpuIsa::avx2);
  const auto rows = cpu::nonzero_rows(o, dy.data());
  ASSERT_TRUE(rows && rows->empty());
  Floats dx(x.size(), NAN), dw(w.size(), NAN), kept(w.size(), 0.5f);
  cpu::ConvOperands<float> operands{
      .x = x.data(), .w = w.data(), .dy = dy.data(), .dx = dx.data(), .dw = dw.data(), .nonzero_rows = &*rows};
  cpu::SparseGrad<float>::dgrad(*context, o, operands);
  cpu::SparseGrad<float>::wgrad(*context, o, operands);
  operands.dw = kept.data(), operands.add = true;
  cpu::SparseGrad<float>::wgrad(*context, o, operands);
  EXPECT_EQ(dx, Floats(x.size(), 0));
  EXPECT_EQ(dw, Floats(w.size(), 0));
  EXPECT_EQ(kept, Floats(w.size(), 0.5f));
}

template <class T>
void expect_found_by_all_channels() {
  const cpu::ConvShape o = conv_shape(1, 40, 40, 64, 80, 3, 1, 1, 1);
  const auto rows = [&](const Floats& dy) { return cpu::nonzero_rows(o, elements_of<T>(dy).data()); };
  Floats dy = sparse_gradient(o, 9, true);
  EXPECT_EQ(rows(dy)->size(), 1600u / 9);
  EXPECT_EQ(rows(dy)->front(), 8);
  std::ranges::replace(dy, 0.0f, -0.0f);
  EXPECT_EQ(rows(dy)->size(), 1600u / 9) << "-0 is zero";
  dy[3 * 80 + 7] = NAN;
  EXPECT_EQ(rows(dy)->front(), 3) << "NAN is not";
  EXPECT_FALSE(rows(sparse_gradient(o, 7, true)));
  EXPECT_FALSE(rows(sparse_gradient(o, 1)));
}

TEST(NonzeroRows, AreFoundByAllOfTheirChannels) {
  expect_found_by_all_channels<float>();
  expect_found_by_all_channels<Bf16>();
}

TEST(NonzeroRows, AreLookedForWhereTheKernelsServe) {
  const auto context = context_of(CpuIsa::avx2);
  EXPECT_TRUE(cpu::sparse_verdict(*context, conv_shape(1, 12, 12, 64, 80, 3, 1, 1, 1)).applies());
  EXPECT_FALSE(cpu::sparse_verdict(*context, conv_shape(1, 12, 12, 64, 72, 3, 1, 1, 1)).applies());  // no whole panels
  EXPECT_FALSE(cpu::sparse_verdict(*context, conv_shape(1, 12, 12, 16, 16, 3, 1, 1, 1)).applies());  // few products
}

}  // namespace
}  // namespace dtrain
