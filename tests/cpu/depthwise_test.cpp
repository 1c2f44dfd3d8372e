// The depthwise convolutions against the direct sums in double precision, element by element.
#include "libdtrain/cpu/conv/depthwise.h"

#include <limits>
#include <vector>

#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Side {
  int64_t size, kernel, stride = 1, before = 0, after = 0, dilation = 1;

  int64_t out() const { return (size + before + after - dilation * (kernel - 1) - 1) / stride + 1; }
};

cpu::ConvShape depthwise_shape(int64_t images, int64_t channels, const Side& h, const Side& w) {
  return {images,   h.size,   w.size,     channels,   channels, h.kernel, w.kernel, h.out(), w.out(),
          h.stride, w.stride, h.dilation, w.dilation, h.before, h.after,  w.before, w.after, channels};
}

// Operands whose values T stores, with the direct sums.
struct DepthwiseProblem {
  cpu::ConvShape o;
  Floats x, w, dy, bias;
  Doubles y, dx, dw;

  template <class T>
  DepthwiseProblem(const cpu::ConvShape& shape, T)
      : o(shape),
        x(values_of(elements_of<T>(drawn(o.n * o.h * o.w * o.c, 1)))),
        w(values_of(elements_of<T>(drawn(o.c * o.r * o.s, 2)))),
        dy(values_of(elements_of<T>(drawn(o.n * o.p * o.q * o.c, 3)))),
        bias(drawn(o.c, 4)),
        y(dy.size()),
        dx(x.size()),
        dw(w.size()) {
    for (int64_t out = 0; out < o.n * o.p * o.q; ++out)
      for (int64_t tap = 0; tap < o.r * o.s; ++tap) {
        const int64_t row = out / o.q % o.p * o.stride_h + tap / o.s * o.dilation_h - o.pad_top;
        const int64_t column = out % o.q * o.stride_w + tap % o.s * o.dilation_w - o.pad_left;
        if (row < 0 || row >= o.h || column < 0 || column >= o.w) continue;
        add_products(out * o.c, ((out / (o.p * o.q) * o.h + row) * o.w + column) * o.c, tap);
      }
  }

  void add_products(int64_t out, int64_t in, int64_t tap) {
    for (int64_t c = 0; c < o.c; ++c) {
      const auto to = static_cast<size_t>(out + c), from = static_cast<size_t>(in + c);
      const auto filter = static_cast<size_t>(c * o.r * o.s + tap);
      y[to] += static_cast<double>(x[from]) * w[filter];
      dx[from] += static_cast<double>(dy[to]) * w[filter];
      dw[filter] += static_cast<double>(dy[to]) * x[from];
    }
  }
};

// What sums of floats lose at most.
constexpr double kLost = 1e-5;

// Each element is the sum expected and its offset, [i % offsets.size()], rounded to T once: it lies between what the
// ends of the range that a sum of floats may be in are rounded to.
template <class T>
void expect_sums(const std::vector<T>& found, const Doubles& expected, const Floats& offsets, const char* what) {
  for (size_t i = 0; i < found.size(); ++i) {
    const double sum = expected[i] + offsets[i % offsets.size()];
    const float value = found[i];
    ASSERT_GE(value, static_cast<float>(cpu::to_element<T>(static_cast<float>(sum - kLost)))) << what << " at " << i;
    ASSERT_LE(value, static_cast<float>(cpu::to_element<T>(static_cast<float>(sum + kLost)))) << what << " at " << i;
  }
}

class Depthwise : public testing::TestWithParam<cpu::ConvShape> {};

template <class T>
void expect_depthwise_sums(const cpu::ConvShape& o) {
  const DepthwiseProblem problem(o, T());
  const auto x = elements_of<T>(problem.x), w = elements_of<T>(problem.w), dy = elements_of<T>(problem.dy);
  for (const CpuIsa isa : instruction_sets())
    for (const bool add : {false, true}) {
      SCOPED_TRACE(concat(name_of(isa), " ", dtype_of<T>(), add ? ", added" : ""));
      const auto context = context_of(isa);
      ASSERT_TRUE(cpu::depthwise_verdict(*context, o).applies());
      const float start = add ? 0.5f : std::numeric_limits<float>::quiet_NaN();  // NaN shows what was not written
      const Floats offset{add ? start : 0.0f};
      std::vector<T> y(dy.size(), cpu::to_element<T>(start)), dx(x.size(), cpu::to_element<T>(start));
      Floats dw(w.size(), start);
      const cpu::ConvOperands<T> operands{.x = x.data(),
                                          .w = w.data(),
                                          .dy = dy.data(),
                                          .bias = add ? problem.bias.data() : nullptr,
                                          .y = y.data(),
                                          .dx = dx.data(),
                                          .dw = dw.data(),
                                          .add = add};
      cpu::Depthwise<T>::forward(*context, o, operands);
      cpu::Depthwise<T>::dgrad(*context, o, operands);
      cpu::Depthwise<T>::wgrad(*context, o, operands);
      expect_sums(y, problem.y, add ? problem.bias : offset, "y");
      expect_sums(dx, problem.dx, offset, "dx");
      expect_sums(dw, problem.dw, offset, "dw");
    }
}

TEST_P(Depthwise, AgreesWithTheDirectSum) { expect_depthwise_sums<float>(GetParam()); }

TEST_P(Depthwise, OfBf16IsTheDirectSumRoundedOnce) { expect_depthwise_sums<Bf16>(GetParam()); }

// Kernels of each width, on whole vectors of channels, on what they leave and on less than one.
std::vector<cpu::ConvShape> kernels_of_each_width() {
  std::vector<cpu::ConvShape> shapes;
  for (int64_t kernel = 1; kernel <= 7; ++kernel)
    for (const int64_t channels : {3, 12, 29, 40})
      for (const int64_t stride : {1, 2}) {
        const Side side{16, kernel, stride, kernel / 2, (kernel - 1) / 2};
        shapes.push_back(depthwise_shape(1, channels, {9, kernel, stride, kernel / 2, kernel / 2}, side));
      }
  return shapes;
}
INSTANTIATE_TEST_SUITE_P(EachWidth, Depthwise, testing::ValuesIn(kernels_of_each_width()));

INSTANTIATE_TEST_SUITE_P(
    Edges, Depthwise,
    testing::Values(depthwise_shape(2, 16, {3, 7, 1, 3, 3}, {3, 7, 1, 3, 3}),          // beyond the image on both sides
                    depthwise_shape(1, 20, {7, 3, 2, 0, 1}, {8, 3, 2, 0, 1}),          // bottom and right alone
                    depthwise_shape(1, 17, {5, 3, 1, 2, 0}, {6, 3, 1, 2, 0}),          // top and left alone
                    depthwise_shape(2, 24, {1, 1, 1, 1, 2}, {1, 1, 1, 2, 1}),          // pixels without a tap inside
                    depthwise_shape(1, 33, {7, 2, 3}, {11, 2, 3}),                     // pixels that no window reaches
                    depthwise_shape(1, 21, {9, 3, 2, 2, 2, 2}, {17, 3, 2, 2, 2, 2}),   // dilated, by the stride
                    depthwise_shape(1, 19, {13, 2, 3, 1, 0, 2}, {17, 4, 2, 2, 3, 3}),  // all unequal
                    depthwise_shape(1, 6, {4, 3, 1, 1, 1}, {19, 9, 1, 4, 4}),          // more taps than have a form
                    depthwise_shape(3, 48, {6, 3, 1, 1, 1}, {37, 3, 1, 1, 1})));       // more pixels than one sum of dw

TEST(DepthwiseShapes, AreOneFilterPerChannelOfFewRows) {
  const auto context = make_cpu_context();
  const auto takes = [&](const cpu::ConvShape& o) { return cpu::depthwise_verdict(*context, o).applies(); };
  const cpu::ConvShape taken = depthwise_shape(1, 8, {9, 7}, {9, 3});
  EXPECT_TRUE(takes(taken));
  cpu::ConvShape several = taken, single = taken;
  several.k = 16;
  single.c = single.k = single.groups = 1;
  EXPECT_FALSE(takes(several));
  EXPECT_FALSE(takes(single));
  EXPECT_FALSE(takes(depthwise_shape(1, 8, {9, 8}, {9, 3})));
}

}  // namespace
}  // namespace dtrain
