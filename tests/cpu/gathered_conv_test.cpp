// Convolutions as products of gathered rows against the direct sum in double precision.
#include "libdtrain/cpu/gathered_conv.h"

#include <cmath>
#include <vector>

#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/for_each_tap.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Sums = std::vector<double>;

template <class T>
Sums forward_sums(const cpu::ConvShape& o, const std::vector<T>& x, const std::vector<T>& w) {
  Sums y(static_cast<size_t>(o.n * o.p * o.q * o.k));
  for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t k = 0; k < o.k; ++k) {
      const T* const pixel = x.data() + in * o.c;
      const T* const filter = w.data() + (k * o.r * o.s + tap) * o.c;
      double& sum = y[static_cast<size_t>(out * o.k + k)];
      for (int64_t c = 0; c < o.c; ++c) sum += static_cast<double>(pixel[c]) * filter[c];
    }
  });
  return y;
}

template <class T>
Sums gradient_sums(const cpu::ConvShape& o, const std::vector<T>& dy, const std::vector<T>& w) {
  Sums dx(static_cast<size_t>(o.n * o.h * o.w * o.c));
  for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t k = 0; k < o.k; ++k) {
      const double gradient = dy[static_cast<size_t>(out * o.k + k)];
      const T* const filter = w.data() + (k * o.r * o.s + tap) * o.c;
      for (int64_t c = 0; c < o.c; ++c) dx[static_cast<size_t>(in * o.c + c)] += gradient * filter[c];
    }
  });
  return dx;
}

// Sums of products of numbers from -1 to 1 whose roundings are those of fp32, and one to T.
template <class T>
void expect_near(const T* found, const Sums& expected, double inner) {
  const double rounding = std::is_same_v<T, Bf16> ? 1.0 / 256 : 1e-6;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], rounding * std::abs(expected[i]) + 2e-7 * inner + 1e-6) << i;
}

template <class T>
Tensor device_of(Context& context, const std::vector<T>& values) {
  const Tensor tensor = context.empty({static_cast<int64_t>(values.size())}, dtype_of<T>());
  context.upload(values.data(), tensor);
  return tensor;
}

template <class T>
void check(Context& context, const cpu::ConvShape& o) {
  const auto x = elements_of<T>(drawn(o.n * o.h * o.w * o.c, 1));
  const auto w = elements_of<T>(drawn(o.k * o.r * o.s * o.c, 2));
  const std::vector<float> bias = drawn(o.k, 3);
  const auto inner = static_cast<double>(o.r * o.s * o.c);
  const Sums sums = forward_sums(o, x, w);
  for (const bool adds : {false, true}) {
    Sums expected = sums;
    for (size_t i = 0; adds && i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
    const Tensor y = context.empty({static_cast<int64_t>(sums.size())}, dtype_of<T>());
    cpu::gathered_forward(context, o, x.data(), w.data(), adds ? bias.data() : nullptr, y.data<T>());
    expect_near(y.data<T>(), expected, inner);
  }
  if (!cpu::gathered_dgrad_pays(context, o, dtype_of<T>())) return;
  const auto dy = elements_of<T>(drawn(o.n * o.p * o.q * o.k, 4)),
             before = elements_of<T>(drawn(o.n * o.h * o.w * o.c, 5));
  const Sums gradient = gradient_sums(o, dy, w);
  for (const bool add : {false, true}) {
    Sums expected = gradient;
    for (size_t i = 0; add && i < expected.size(); ++i) expected[i] += before[i];
    const Tensor dx = device_of(context, before);
    cpu::gathered_dgrad(context, o, dy.data(), w.data(), dx.data<T>(), add);
    expect_near(dx.data<T>(), expected, static_cast<double>(o.r * o.s * o.k));
  }
}

class GatheredConv : public testing::TestWithParam<cpu::ConvShape> {};

TEST_P(GatheredConv, AgreesWithTheDirectSum) {
  for (const CpuIsa isa : instruction_sets()) {
    SCOPED_TRACE(name_of(isa));
    const auto context = context_of(isa);
    check<float>(*context, GetParam());
    if (context->kernels().product.gathered_bf16_rows) check<Bf16>(*context, GetParam());
  }
}

// n, h, w, c, k, r, s, p, q, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_bottom, pad_left, pad_right,
// groups
INSTANTIATE_TEST_SUITE_P(
    Shapes, GatheredConv,
    testing::Values(cpu::ConvShape{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{3, 13, 11, 48, 80, 1, 1, 13, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{2, 9, 8, 64, 96, 1, 1, 9, 8, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{2, 9, 8, 32, 64, 1, 1, 5, 4, 2, 2, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{1, 3, 3, 64, 320, 1, 1, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1},   // panels are divided
                    cpu::ConvShape{1, 2, 2, 640, 320, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1},  // many of them
                    cpu::ConvShape{1, 15, 14, 1024, 256, 1, 1, 15, 14, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // runs collide
                    cpu::ConvShape{1, 7, 7, 512, 288, 3, 3, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1},  // those of several taps
                    cpu::ConvShape{1, 6, 6, 2400, 96, 1, 1, 6, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // long ones, in parts
                    cpu::ConvShape{2, 120, 70, 16, 256, 1, 1, 120, 70, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // past the caches
                    cpu::ConvShape{41, 3, 2, 32, 64, 3, 3, 2, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1},        // many small images
                    cpu::ConvShape{2, 11, 10, 32, 16, 3, 2, 4, 3, 2, 3, 3, 1, 2, 1, 0, 0, 1},  // strided and dilated
                    cpu::ConvShape{2, 13, 12, 64, 32, 3, 3, 7, 6, 2, 2, 1, 1, 1, 1, 1, 0, 1},
                    cpu::ConvShape{2, 21, 18, 3, 64, 7, 7, 11, 9, 2, 2, 1, 1, 3, 3, 3, 3, 1},
                    cpu::ConvShape{1, 9, 12, 5, 17, 3, 2, 3, 9, 2, 1, 2, 3, 0, 0, 0, 0, 1}));  // dilated, not square

// Whole blocks of a transposition, and what is left of rows and words.
TEST(PackedPanels, HoldTheRowsAsColumns) {
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    const int64_t width = context->kernels().product.columns;
    for (const auto& [k, inner] : {std::pair<int64_t, int64_t>{1, 1}, {width, 8}, {width + 3, 19}, {2 * width, 1030}}) {
      SCOPED_TRACE(concat(name_of(isa), " ", k, " x ", inner));
      const std::vector<float> w = drawn(k * inner, 1);
      std::vector<float> panels(static_cast<size_t>(cpu::panel_elements(*context, k, inner)), NAN);
      cpu::pack_panels(*context, k, inner, w.data(), panels.data());
      for (int64_t i = 0; i < static_cast<int64_t>(panels.size()); ++i) {
        const int64_t row = i / (width * inner) * width + i % width, place = i / width % inner;
        ASSERT_EQ(panels[static_cast<size_t>(i)], row < k ? w[static_cast<size_t>(row * inner + place)] : 0) << i;
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
