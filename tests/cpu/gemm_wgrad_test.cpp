// The filters' gradient as a matrix product against the direct sum in double precision.
#include "libdtrain/cpu/gemm_wgrad.h"

#include <vector>

#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/for_each_tap.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::vector<double> direct_sum(const cpu::ConvShape& o, const std::vector<float>& x, const std::vector<float>& dy) {
  std::vector<double> dw(static_cast<size_t>(o.k * o.r * o.s * o.c));
  for_each_tap(o, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t k = 0; k < o.k; ++k)
      for (int64_t c = 0; c < o.c; ++c)
        dw[static_cast<size_t>((k * o.r * o.s + tap) * o.c + c)] +=
            static_cast<double>(dy[static_cast<size_t>(out * o.k + k)]) * x[static_cast<size_t>(in * o.c + c)];
  });
  return dw;
}

// Numbers of T, and the floats that they are.
template <class T>
struct Operand {
  std::vector<T> stored;
  std::vector<float> exact;

  Operand(int64_t count, uint64_t seed) {
    for (const float value : drawn(count, seed)) {
      stored.push_back(cpu::to_element<T>(value));
      exact.push_back(stored.back());
    }
  }
};

template <class T>
void check_against_direct_sum(Context& context, const cpu::ConvShape& o) {
  const Operand<T> x(o.n * o.h * o.w * o.c, 1), dy(o.n * o.p * o.q * o.k, 2);
  const std::vector<double> expected = direct_sum(o, x.exact, dy.exact);
  for (const bool add : {false, true}) {
    // NAN shows what was not written.
    std::vector<float> dw(expected.size(), add ? 0.5f : NAN), again = dw;
    cpu::gemm_wgrad(context, o, x.stored.data(), dy.stored.data(), dw.data(), add);
    for (size_t i = 0; i < dw.size(); ++i) ASSERT_NEAR(dw[i], expected[i] + (add ? 0.5 : 0), 5e-5) << i;
    cpu::gemm_wgrad(context, o, x.stored.data(), dy.stored.data(), again.data(), add);
    EXPECT_EQ(dw, again);
  }
}

class GemmWgrad : public testing::TestWithParam<cpu::ConvShape> {};

TEST_P(GemmWgrad, AgreesWithTheDirectSum) {
  for (const CpuIsa isa : instruction_sets()) {
    SCOPED_TRACE(name_of(isa));
    const auto context = context_of(isa);
    if (!cpu::gemm_wgrad_supports(*context, GetParam())) continue;  // narrower than the set's panels
    check_against_direct_sum<float>(*context, GetParam());
    if (context->kernels().product.pairs_by_pairs) check_against_direct_sum<Bf16>(*context, GetParam());
  }
}

// n, h, w, c, k, r, s, p, q, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_bottom, pad_left, pad_right,
// groups
INSTANTIATE_TEST_SUITE_P(
    Shapes, GemmWgrad,
    testing::Values(cpu::ConvShape{1, 4, 4, 16, 16, 1, 1, 4, 4, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{3, 13, 11, 48, 80, 1, 1, 13, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // several passes
                    cpu::ConvShape{2, 9, 8, 32, 64, 1, 1, 5, 4, 2, 2, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{3, 13, 11, 64, 32, 1, 1, 13, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},   // an odd pixel
                    cpu::ConvShape{2, 15, 11, 128, 96, 1, 1, 15, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // where they lie
                    cpu::ConvShape{1, 1, 1, 64, 32, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
                    cpu::ConvShape{1, 28, 27, 32, 160, 3, 3, 14, 14, 2, 2, 1, 1, 1, 0, 1, 1, 1},
                    cpu::ConvShape{1, 13, 12, 64, 96, 3, 3, 7, 6, 2, 2, 1, 1, 1, 1, 1, 1, 1},    // several panels of
                    cpu::ConvShape{2, 29, 27, 64, 32, 3, 3, 15, 14, 2, 2, 1, 1, 1, 1, 1, 1, 1},  // windows at once
                    cpu::ConvShape{2, 28, 27, 16, 96, 3, 3, 14, 14, 2, 2, 1, 1, 1, 0, 1, 1, 1},
                    cpu::ConvShape{1, 9, 12, 16, 16, 3, 2, 3, 9, 2, 1, 2, 3, 0, 0, 0, 0, 1}));  // dilated, not square

}  // namespace
}  // namespace dtrain
