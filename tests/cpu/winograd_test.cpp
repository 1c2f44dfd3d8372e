// The Winograd kernels against a reference in double precision.
#include "libdtrain/cpu/conv/winograd.h"

#include <vector>

#include "libdtrain/cpu/elements.h"
#include "tests/cpu/conv_reference.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

cpu::ConvShape conv_shape(const cpu::WinogradShape& s) {
  return {.n = s.n,
          .h = s.h,
          .w = s.w,
          .c = s.c,
          .k = s.k,
          .r = 3,
          .s = 3,
          .p = s.p,
          .q = s.q,
          .stride_h = 1,
          .stride_w = 1,
          .dilation_h = 1,
          .dilation_w = 1,
          .pad_top = s.pad_top,
          .pad_bottom = s.p + 2 - s.h - s.pad_top,
          .pad_left = s.pad_left,
          .pad_right = s.q + 2 - s.w - s.pad_left,
          .groups = 1};
}

struct Problem {
  cpu::WinogradShape s;
  std::vector<float> x, w, dy;
  ConvReference expected;

  // The operands' values are rounded to T.
  template <class T>
  Problem(const cpu::WinogradShape& shape, T)
      : s(shape),
        x(values_of(elements_of<T>(drawn(s.n * s.h * s.w * s.c, 1)))),
        w(values_of(elements_of<T>(drawn(s.k * 9 * s.c, 2)))),
        dy(values_of(elements_of<T>(drawn(s.n * s.p * s.q * s.k, 3)))),
        expected(conv_shape(s), x, w, dy) {}
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

class Winograd : public testing::TestWithParam<cpu::WinogradShape> {};

// `bound`: of what is stored in T; dw is f32.
template <class T>
void expect_reference(const cpu::WinogradShape& s, double bound) {
  const Problem problem(s, T());
  const auto x = elements_of<T>(problem.x), w = elements_of<T>(problem.w), dy_of = elements_of<T>(problem.dy);
  for (const CpuIsa isa : instruction_sets())
    for (const bool add : {false, true}) {
      SCOPED_TRACE(concat(name_of(isa), " ", dtype_of<T>()));
      const auto context = context_of(isa);
      if (!cpu::winograd_supports(*context, s)) continue;  // channels that are no whole panels of this set
      const float start = add ? 0.5f : NAN;                // NAN shows what was not written
      std::vector<T> y(problem.expected.y.size(), cpu::to_element<T>(start)),
          dx(problem.expected.dx.size(), cpu::to_element<T>(start));
      std::vector<float> dw(problem.expected.dw.size(), start);
      const std::vector<float> bias(static_cast<size_t>(s.k), 0.5f);
      cpu::winograd_forward(*context, s, x.data(), w.data(), add ? bias.data() : nullptr, y.data());
      cpu::winograd_dgrad(*context, s, dy_of.data(), w.data(), dx.data(), add);
      cpu::winograd_wgrad(*context, s, x.data(), dy_of.data(), dw.data(), add);
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
                             cpu::WinogradShape{1, 4, 4, 16, 16, 4, 4, 1, 1},
                             cpu::WinogradShape{2, 7, 7, 32, 64, 7, 7, 1, 1},
                             cpu::WinogradShape{1, 5, 9, 32, 96, 3, 7, 0, 0},    // no padding
                             cpu::WinogradShape{1, 6, 5, 32, 64, 8, 7, 2, 2},    // full padding
                             cpu::WinogradShape{3, 13, 6, 48, 32, 13, 5, 1, 0},  // asymmetric
                             cpu::WinogradShape{1, 3, 1, 16, 16, 3, 1, 1, 1},    // narrower than a tile
                             cpu::WinogradShape{1, 8, 8, 272, 16, 8, 8, 1, 1},   // deeper than one pass of the kernel
                             cpu::WinogradShape{1, 8, 8, 160, 160, 8, 8, 1, 1},  // filters transformed on the way
                             cpu::WinogradShape{58, 2, 2, 480, 64, 2, 2, 1, 1},  // filters past the second-level cache
                             cpu::WinogradShape{1, 8, 8, 128, 96, 8, 8, 1, 1},   // several panels in a product
                             cpu::WinogradShape{41, 14, 14, 64, 32, 14, 14, 1, 1},
                             cpu::WinogradShape{40, 14, 14, 48, 48, 14, 14, 1, 1}));  // more than one group of tiles

TEST(Winograd, IsBitEqualFromRunToRun) {
  const Problem problem({2, 9, 9, 32, 32, 9, 9, 1, 1}, float());
  const auto context = context_of(best_cpu_isa());
  std::vector<float> first(problem.expected.y.size()), second(problem.expected.y.size());
  cpu::winograd_forward(*context, problem.s, problem.x.data(), problem.w.data(), nullptr, first.data());
  cpu::winograd_forward(*context, problem.s, problem.x.data(), problem.w.data(), nullptr, second.data());
  EXPECT_EQ(first, second);
}

TEST(Winograd, TakesChannelsInWholePanels) {
  const cpu::WinogradShape narrow{1, 4, 4, 16, 16, 4, 4, 1, 1}, odd{1, 4, 4, 32, 40, 4, 4, 1, 1};
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa);
    EXPECT_EQ(cpu::winograd_supports(*context, narrow), isa == CpuIsa::avx2);
    EXPECT_FALSE(cpu::winograd_supports(*context, odd));
  }
}

TEST(Winograd, PaysForManyTilesAndChannelsOnly) {
  EXPECT_TRUE(cpu::winograd_pays({16, 7, 7, 512, 512, 7, 7, 1, 1}, 24));
  EXPECT_FALSE(cpu::winograd_pays({2, 7, 7, 512, 512, 7, 7, 1, 1}, 24)) << "8 tiles do not pay for the filters";
  EXPECT_FALSE(cpu::winograd_pays({16, 56, 56, 32, 32, 56, 56, 1, 1}, 24)) << "32 channels do not pay for the tiles";
  EXPECT_FALSE(cpu::winograd_pays({64, 1, 1, 512, 512, 1, 1, 1, 1}, 24)) << "tiles of one pixel";
  // What the tests of conv2d call large enough.
  EXPECT_TRUE(cpu::winograd_pays({6, 8, 8, 64, 32, 8, 8, 1, 1}, 24));
  EXPECT_TRUE(cpu::winograd_pays({6, 7, 6, 48, 48, 6, 7, 0, 2}, 24));
}

}  // namespace
}  // namespace dtrain
