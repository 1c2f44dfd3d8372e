// Gradients of images by tile registers against the direct sum in double precision. The forward convolutions are with
// those of other kernels, in gathered_conv_test.cpp.
#include "libdtrain/cpu/conv/amx_gemm.h"

#include <cmath>
#include <vector>

#include "libdtrain/cpu/elements.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/for_each_tap.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::vector<double> direct_sum(const cpu::ConvShape& o, const std::vector<Bf16>& dy, const std::vector<Bf16>& w) {
  std::vector<double> dx(static_cast<size_t>(o.n * o.h * o.w * o.c));
  for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t k = 0; k < o.k; ++k)
      for (int64_t c = 0; c < o.c; ++c)
        dx[static_cast<size_t>(in * o.c + c)] += static_cast<double>(dy[static_cast<size_t>(out * o.k + k)]) *
                                                 w[static_cast<size_t>((k * o.r * o.s + tap) * o.c + c)];
  });
  return dx;
}

class TileDgrad : public testing::TestWithParam<cpu::ConvShape> {};

TEST_P(TileDgrad, AgreesWithTheDirectSum) {
  const cpu::ConvShape& o = GetParam();
  const auto dy = elements_of<Bf16>(drawn(o.n * o.p * o.q * o.k, 1)),
             w = elements_of<Bf16>(drawn(o.k * o.r * o.s * o.c, 2)),
             before = elements_of<Bf16>(drawn(o.n * o.h * o.w * o.c, 3));
  const std::vector<double> sums = direct_sum(o, dy, w);
  for (const CpuIsa isa : instruction_sets_with(&cpu::Capabilities::amx))
    for (const int threads : isa == CpuIsa::scalar ? std::vector<int>{5} : std::vector<int>{1, 2, 5}) {
      const auto context = context_of(isa, threads);
      ASSERT_TRUE(cpu::amx_dgrad_supports(*context, o));
      for (const bool add : {false, true}) {
        std::vector<Bf16> dx = add ? before : std::vector<Bf16>(before.size(), to_bf16(NAN));
        cpu::amx_dgrad(*context, o, dy.data(), w.data(), dx.data(), add);
        for (size_t i = 0; i < dx.size(); ++i) {
          const double expected = sums[i] + (add ? static_cast<double>(before[i]) : 0);
          ASSERT_NEAR(dx[i], expected, std::abs(expected) / 256 + 1e-4) << i << ", " << threads << " threads";
        }
      }
    }
}

// n, h, w, c, k, r, s, p, q, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_bottom, pad_left, pad_right,
// groups
INSTANTIATE_TEST_SUITE_P(
    Shapes, TileDgrad,
    testing::Values(cpu::ConvShape{1, 1, 1, 32, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{2, 13, 11, 96, 70, 1, 1, 13, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // pieces of 14 words
                    cpu::ConvShape{3, 14, 9, 64, 64, 3, 3, 14, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                    cpu::ConvShape{41, 2, 3, 32, 64, 3, 3, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},   // many images in a block
                    cpu::ConvShape{2, 9, 8, 32, 64, 1, 1, 5, 4, 2, 2, 1, 1, 0, 0, 0, 0, 1},    // pixels without a tap
                    cpu::ConvShape{2, 15, 16, 64, 32, 3, 3, 8, 8, 2, 2, 1, 1, 1, 1, 0, 1, 1},  // SAME of a stride
                    cpu::ConvShape{1, 17, 12, 32, 34, 3, 2, 5, 9, 3, 1, 2, 3, 1, 2, 0, 0, 1},  // dilated, not square
                    cpu::ConvShape{1, 4, 4, 1056, 512, 3, 3, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1},  // panels are divided
                    cpu::ConvShape{1, 2, 2, 32, 32, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 1}));   // mostly padding

}  // namespace
}  // namespace dtrain
