// The Winograd kernels against a reference in double precision.
#include "libdtrain/cpu/conv/winograd.h"

#include <vector>

#include "libdtrain/cpu/elements.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/conv_reference.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

// n, h, w, c, k, p, q, pad_top, pad_left of a 3x3 convolution of stride 1.
cpu::ConvShape shape_3x3(int64_t n, int64_t h, int64_t w, int64_t c, int64_t k, int64_t p, int64_t q, int64_t pad_top,
                         int64_t pad_left) {
  return {n, h, w, c, k, 3, 3, p, q, 1, 1, 1, 1, pad_top, p + 2 - h - pad_top, pad_left, q + 2 - w - pad_left, 1};
}

bool is_supported(const Context& context, const cpu::ConvShape& s) {
  return cpu::winograd_verdict(context, s, 1).kind != cpu::Verdict::Kind::unsupported;
}

struct Problem {
  cpu::ConvShape s;
  std::vector<float> x, w, dy;
  ConvReference expected;

  // The operands' values are rounded to T.
  template <class T>
  Problem(const cpu::ConvShape& shape, T)
      : s(shape),
        x(values_of(elements_of<T>(drawn(s.n * s.h * s.w * s.c, 1)))),
        w(values_of(elements_of<T>(drawn(s.k * 9 * s.c, 2)))),
        dy(values_of(elements_of<T>(drawn(s.n * s.p * s.q * s.k, 3)))),
        expected(s, x, w, dy) {}
};

// Largest difference over the largest value.
double relative_error(const std::vector<float>& found, const std::vector<double>& expected, double offset) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::abs(found[i] - offset - expected[i]));
    scale = std::max(scale, std::abs(expected[i]));
  }
  EXPECT_GT(scale, 0);
  return difference / scale;
}

class Winograd : public testing::TestWithParam<cpu::ConvShape> {};

// `bound`: of what is stored in T; dw is f32.
template <class T>
void expect_reference(const cpu::ConvShape& s, double bound) {
  const Problem problem(s, T());
  const auto x = elements_of<T>(problem.x), w = elements_of<T>(problem.w), dy_of = elements_of<T>(problem.dy);
  for (const CpuIsa isa : instruction_sets())
    for (const bool add : {false, true}) {
      SCOPED_TRACE(concat(name_of(isa), " ", dtype_of<T>()));
      const auto context = context_of(isa);
      if (!is_supported(*context, s)) continue;  // channels that are no whole panels of this set
      const float start = add ? 0.5f : NAN;      // NAN shows what was not written
      std::vector<T> y(problem.expected.y.size(), cpu::to_element<T>(start)),
          dx(problem.expected.dx.size(), cpu::to_element<T>(start));
      std::vector<float> dw(problem.expected.dw.size(), start);
      const std::vector<float> bias(static_cast<size_t>(s.k), 0.5f);
      const cpu::ConvOperands<T> operands{.x = x.data(),
                                          .w = w.data(),
                                          .dy = dy_of.data(),
                                          .bias = add ? bias.data() : nullptr,
                                          .y = y.data(),
                                          .dx = dx.data(),
                                          .dw = dw.data(),
                                          .add = add};
      cpu::Winograd<T>::forward(*context, s, operands);
      cpu::Winograd<T>::dgrad(*context, s, operands);
      cpu::Winograd<T>::wgrad(*context, s, operands);
      const double offset = add ? 0.5 : 0;
      EXPECT_LT(relative_error(values_of(y), problem.expected.y, offset), bound);
      EXPECT_LT(relative_error(values_of(dx), problem.expected.dx, offset), bound);
      EXPECT_LT(relative_error(dw, problem.expected.dw, offset), 1e-5);
    }
}

TEST_P(Winograd, AgreesWithTheReference) { expect_reference<float>(GetParam(), 1e-5); }

// All that is lost is one rounding of the result, to eight bits.
TEST_P(Winograd, OfBf16AgreesWithTheReference) { expect_reference<Bf16>(GetParam(), 0x1p-8); }

INSTANTIATE_TEST_SUITE_P(Shapes, Winograd,
                         testing::Values(
                             // n, h, w, c, k, p, q, pad_top, pad_left
                             shape_3x3(1, 4, 4, 16, 16, 4, 4, 1, 1), shape_3x3(2, 7, 7, 32, 64, 7, 7, 1, 1),
                             shape_3x3(1, 5, 9, 32, 96, 3, 7, 0, 0),    // no padding
                             shape_3x3(1, 6, 5, 32, 64, 8, 7, 2, 2),    // full padding
                             shape_3x3(3, 13, 6, 48, 32, 13, 5, 1, 0),  // asymmetric
                             shape_3x3(1, 3, 1, 16, 16, 3, 1, 1, 1),    // narrower than a tile
                             shape_3x3(1, 8, 8, 272, 16, 8, 8, 1, 1),   // deeper than one pass of the kernel
                             shape_3x3(1, 8, 8, 160, 160, 8, 8, 1, 1),  // filters transformed on the way
                             shape_3x3(58, 2, 2, 480, 64, 2, 2, 1, 1),  // filters past the second-level cache
                             shape_3x3(1, 8, 8, 128, 96, 8, 8, 1, 1),   // several panels in a product
                             shape_3x3(41, 14, 14, 64, 32, 14, 14, 1, 1),
                             shape_3x3(40, 14, 14, 48, 48, 14, 14, 1, 1)));  // more than one group of tiles

TEST(Winograd, IsBitEqualFromRunToRun) {
  const Problem problem(shape_3x3(2, 9, 9, 32, 32, 9, 9, 1, 1), float());
  const auto context = context_of(best_cpu_isa());
  std::vector<float> first(problem.expected.y.size()), second(problem.expected.y.size());
  for (std::vector<float>* y : {&first, &second})
    cpu::Winograd<float>::forward(*context, problem.s, {.x = problem.x.data(), .w = problem.w.data(), .y = y->data()});
  EXPECT_EQ(first, second);
}

TEST(Winograd, TakesChannelsInWholePanels) {
  const cpu::ConvShape narrow = shape_3x3(1, 4, 4, 16, 16, 4, 4, 1, 1), odd = shape_3x3(1, 4, 4, 32, 40, 4, 4, 1, 1);
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    EXPECT_EQ(is_supported(*context, narrow), isa == CpuIsa::avx2);
    EXPECT_FALSE(is_supported(*context, odd));
  }
}

TEST(Winograd, PaysForManyTilesAndChannelsOnly) {
  const auto context = context_of(CpuIsa::avx2);
  const auto pays = [&](int64_t n, int64_t h, int64_t w, int64_t c, int64_t k, int64_t p, int64_t q, int64_t pad_top,
                        int64_t pad_left) {
    return cpu::winograd_verdict(*context, shape_3x3(n, h, w, c, k, p, q, pad_top, pad_left), 24).applies();
  };
  EXPECT_TRUE(pays(16, 7, 7, 512, 512, 7, 7, 1, 1));
  EXPECT_FALSE(pays(2, 7, 7, 512, 512, 7, 7, 1, 1)) << "8 tiles do not pay for the filters";
  EXPECT_FALSE(pays(16, 56, 56, 32, 32, 56, 56, 1, 1)) << "32 channels do not pay for the tiles";
  EXPECT_FALSE(pays(64, 1, 1, 512, 512, 1, 1, 1, 1)) << "tiles of one pixel";
  // What the tests of conv2d call large enough.
  EXPECT_TRUE(pays(6, 8, 8, 64, 32, 8, 8, 1, 1));
  EXPECT_TRUE(pays(6, 7, 6, 48, 48, 6, 7, 0, 2));
}

}  // namespace
}  // namespace dtrain
