// Every algorithm of every list against a reference in double precision, on all shapes that it accepts.
#include "libdtrain/cpu/conv/algorithms.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "libdtrain/cpu/conv/onednn.h"
#include "libdtrain/cpu/conv/sparse_grad.h"
#include "libdtrain/cpu/conv/winograd.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "tests/cpu/conv_reference.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Sums = std::vector<double>;

// dy of `count` elements whose rows have `filters` of them. `sparse`: all rows but each 11th are zero.
template <class T>
std::vector<T> output_gradient(int64_t count, int64_t filters, bool sparse) {
  std::vector<T> dy = elements_of<T>(drawn(count, 3));
  for (size_t i = 0; sparse && i < dy.size(); ++i)
    if (i / static_cast<size_t>(filters) % 11 != 10) dy[i] = T{};
  return dy;
}

// Operands of all passes, and their results in double precision.
template <class T>
struct Problem {
  cpu::ConvShape o;
  std::vector<T> x, w, dy, dx_before;
  std::vector<float> bias, dw_before;
  ConvReference expected;

  Problem(const cpu::ConvShape& shape, bool sparse)
      : o(shape),
        x(elements_of<T>(drawn(o.n * o.h * o.w * o.c, 1))),
        w(elements_of<T>(drawn(o.k * o.r * o.s * o.c / o.groups, 2))),
        dy(output_gradient<T>(o.n * o.p * o.q * o.k, o.k, sparse)),
        dx_before(elements_of<T>(drawn(std::ssize(x), 4))),
        bias(drawn(o.k, 5)),
        dw_before(drawn(std::ssize(w), 6)),
        expected(o, x, w, dy) {}
};

// Within a rounding to T of the summand, which is the result before an addition, and of the result, and roundings to
// f32 of sums of `terms` products; Winograd's transforms lose about a digit more.
template <class T>
void expect_near(const T* found, const Sums& expected, const Sums& summand, double terms, bool winograd) {
  const double rounding = std::is_same_v<T, Bf16> ? 1.0 / 256 : 1e-6;
  const double of_sums = winograd ? 1e-5 * std::sqrt(terms) + 1e-5 : 2e-7 * terms + 1e-6;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], rounding * (std::abs(expected[i]) + std::abs(summand[i])) + of_sums) << i;
}

template <class T, class Before>
Sums with(Sums sums, const std::vector<Before>& before, bool add) {
  for (size_t i = 0; add && i < sums.size(); ++i) sums[i] += before[i % before.size()];
  return sums;
}

// What is stored shows by NAN what was not written.
template <class T>
std::vector<T> before(const std::vector<T>& values, bool add) {
  return add ? values : std::vector<T>(values.size(), cpu::to_element<T>(NAN));
}

template <class T>
void check(Context& context, const cpu::ConvAlgorithm<T>& algorithm, cpu::ConvPass pass, const Problem<T>& problem,
           bool add) {
  const cpu::ConvShape& o = problem.o;
  const bool winograd = std::string(algorithm.name) == "winograd";
  const auto taps = static_cast<double>(o.r * o.s), pixels = static_cast<double>(o.n * o.p * o.q);
  // A bound of 5e-5 up to about a thousand pixels. In f32 the list may choose Winograd's algorithm.
  const bool may_transform = winograd || (std::string(algorithm.name) == "in_f32" &&
                                          cpu::winograd_verdict(context, o, 1).kind != cpu::Verdict::Kind::unsupported);
  const double wgrad_terms = may_transform ? 4 * pixels : std::max(245.0, pixels / 4);
  const auto rows = cpu::nonzero_rows(o, problem.dy.data());
  cpu::ConvOperands<T> operands{.x = problem.x.data(), .w = problem.w.data(), .dy = problem.dy.data(), .add = add};
  if (rows) operands.nonzero_rows = &*rows;
  if (pass == cpu::ConvPass::forward) {
    // A tensor: results that are large enough for it are written past the caches.
    const Tensor y = context.empty({std::ssize(problem.expected.y)}, dtype_of<T>());
    operands.bias = add ? problem.bias.data() : nullptr;
    operands.y = y.data<T>();
    algorithm.run(context, o, operands);
    expect_near(y.data<T>(), with<T>(problem.expected.y, problem.bias, add), problem.expected.y,
                taps * static_cast<double>(o.c), winograd);
  } else if (pass == cpu::ConvPass::dgrad) {
    const std::vector<T> start = before(problem.dx_before, add);
    const Tensor dx = context.empty({std::ssize(start)}, dtype_of<T>());
    context.upload(start.data(), dx);
    operands.dx = dx.data<T>();
    algorithm.run(context, o, operands);
    expect_near(dx.data<T>(), with<T>(problem.expected.dx, problem.dx_before, add), problem.expected.dx,
                taps * static_cast<double>(o.k), winograd);
  } else {
    std::vector<float> dw = before(problem.dw_before, add), again = dw;
    operands.dw = dw.data();
    algorithm.run(context, o, operands);
    expect_near(dw.data(), with<T>(problem.expected.dw, problem.dw_before, add), problem.expected.dw, wgrad_terms,
                winograd);
    operands.dw = again.data();
    algorithm.run(context, o, operands);
    EXPECT_EQ(dw, again) << "differs from run to run";
  }
}

constexpr const char* name_of_pass(cpu::ConvPass pass) {
  return pass == cpu::ConvPass::forward ? "forward" : pass == cpu::ConvPass::dgrad ? "dgrad" : "wgrad";
}

// Returns the names of what ran.
template <class T>
std::set<std::string> check_all(const cpu::ConvShape& o, int threads) {
  const Problem<T> dense(o, false);
  std::optional<Problem<T>> sparse;
  std::set<std::string> names;
  for (const CpuIsa isa : instruction_sets()) {
    const auto context = context_of(isa, threads);
    for (const cpu::ConvPass pass : {cpu::ConvPass::forward, cpu::ConvPass::dgrad, cpu::ConvPass::wgrad})
      for (const auto& algorithm : cpu::conv_algorithms<T>(pass)) {
        if (algorithm.verdict(*context, o).kind == cpu::Verdict::Kind::unsupported) continue;
        for (const bool add : {false, true}) {
          SCOPED_TRACE(concat(name_of(isa), " ", dtype_of<T>(), " ", name_of_pass(pass), " ", algorithm.name,
                              add ? ", added" : ""));
          if (algorithm.needs_nonzero_rows && !sparse) sparse.emplace(o, true);
          check<T>(*context, algorithm, pass, algorithm.needs_nonzero_rows ? *sparse : dense, add);
        }
        names.insert(concat(name_of_pass(pass), " ", dtype_of<T>(), " ", algorithm.name));
      }
  }
  return names;
}

// n, h, w, c, k, r, s, p, q, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_bottom, pad_left, pad_right,
// groups
const cpu::ConvShape kShapes[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {3, 13, 11, 48, 80, 1, 1, 13, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {2, 9, 8, 64, 96, 1, 1, 9, 8, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {2, 9, 8, 32, 64, 1, 1, 5, 4, 2, 2, 1, 1, 0, 0, 0, 0, 1},         // pixels that no tap reaches
    {1, 3, 3, 64, 320, 1, 1, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1},        // threads share the panels
    {1, 2, 2, 320, 320, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1},       // many panels
    {1, 5, 7, 1024, 256, 1, 1, 5, 7, 1, 1, 1, 1, 0, 0, 0, 0, 1},      // rows conflict in the cache
    {1, 7, 7, 256, 288, 3, 3, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1},       // rows of several taps
    {1, 6, 6, 2400, 96, 1, 1, 6, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1},       // the depth is blocked
    {1, 120, 70, 16, 256, 1, 1, 120, 70, 1, 1, 1, 1, 0, 0, 0, 0, 1},  // non-temporal stores
    {41, 3, 2, 32, 64, 3, 3, 2, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1},        // many small images
    {2, 11, 10, 32, 16, 3, 2, 4, 3, 2, 3, 3, 1, 2, 1, 0, 0, 1},       // strided and dilated
    {2, 13, 12, 64, 32, 3, 3, 7, 6, 2, 2, 1, 1, 1, 1, 1, 0, 1},       // asymmetric padding
    {2, 21, 18, 3, 64, 7, 7, 11, 9, 2, 2, 1, 1, 3, 3, 3, 3, 1},       // taps of a kernel row are merged
    {1, 9, 12, 5, 17, 3, 2, 3, 9, 2, 1, 2, 3, 0, 0, 0, 0, 1},         // dilated, not square
    {2, 15, 11, 128, 96, 1, 1, 15, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},    // dw without packing
    {1, 28, 27, 32, 160, 3, 3, 14, 14, 2, 2, 1, 1, 1, 0, 1, 1, 1},
    {2, 30, 25, 64, 96, 3, 3, 30, 25, 1, 1, 1, 1, 1, 1, 1, 1, 1},   // Winograd, and sparse gradients
    {2, 13, 11, 96, 70, 1, 1, 13, 11, 1, 1, 1, 1, 0, 0, 0, 0, 1},   // depths that tiles do not divide
    {1, 4, 4, 96, 512, 3, 3, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1},      // AMX: threads share the panels
    {1, 2, 2, 32, 32, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 1},       // mostly padding
    {2, 14, 13, 48, 48, 3, 3, 14, 13, 1, 1, 1, 1, 1, 1, 1, 1, 48},  // depthwise
    {2, 9, 10, 32, 64, 3, 3, 9, 10, 1, 1, 1, 1, 1, 1, 1, 1, 4},     // grouped
};

TEST(ConvAlgorithms, AgreeWithTheDirectSum) {
  std::set<std::string> names;
  int threads = 1;
  for (const cpu::ConvShape& o : kShapes) {
    SCOPED_TRACE(
        concat(o.n, "x", o.h, "x", o.w, "x", o.c, " to ", o.k, ", ", o.r, "x", o.s, ", ", threads, " threads"));
    // Rows of 4 KiB are copied apart where tiles of one panel read them: with more threads than such panels.
    const int used = o.c == 1024 ? 8 : threads;
    names.merge(check_all<float>(o, used));
    names.merge(check_all<Bf16>(o, used));
    threads = threads % 3 + 1;
  }
  // All but those that need instructions that this machine and its instruction sets lack.
  std::set<std::string> unavailable{"implicit_gemm_amx", "bf16 implicit_gemm", "bf16 onednn"};
  for (const CpuIsa isa : instruction_sets()) {
    if (context_of(isa)->kernels().capabilities.amx) unavailable.erase("implicit_gemm_amx");
    if (context_of(isa)->kernels().capabilities.bf16) unavailable.erase("bf16 implicit_gemm");
    if (cpu::OnednnConv<Bf16>::verdict(*context_of(isa), kShapes[0]).applies()) unavailable.erase("bf16 onednn");
  }
  for (const cpu::ConvPass pass : {cpu::ConvPass::forward, cpu::ConvPass::dgrad, cpu::ConvPass::wgrad}) {
    const auto expect_all = [&]<class T>(T) {
      for (const auto& algorithm : cpu::conv_algorithms<T>(pass)) {
        const std::string name = concat(dtype_of<T>(), " ", algorithm.name);
        if (unavailable.contains(algorithm.name) || unavailable.contains(name)) continue;
        EXPECT_TRUE(names.contains(concat(name_of_pass(pass), " ", name))) << algorithm.name << " ran on no shape";
      }
    };
    expect_all(float());
    expect_all(Bf16());
  }
}

TEST(ConvAlgorithms, AreForcedByTheContext) {
  const cpu::ConvShape& o = kShapes[17];
  const Problem<float> problem(o, false);
  const auto plain = make_cpu_context({.threads = 2}),
             forced = make_cpu_context({.threads = 2, .conv_algorithm = "onednn"});
  std::vector<float> y(problem.expected.y.size()), expected = y;
  cpu::OnednnConv<float>::forward(*plain, o, {.x = problem.x.data(), .w = problem.w.data(), .y = expected.data()});
  const cpu::ConvOperands<float> operands{.x = problem.x.data(), .w = problem.w.data(), .y = y.data()};
  cpu::run_conv(*forced, cpu::ConvPass::forward, o, operands);
  EXPECT_EQ(y, expected);
  cpu::run_conv(*plain, cpu::ConvPass::forward, o, operands);
  EXPECT_NE(y, expected) << "the shape is Winograd's";
}

TEST(ConvAlgorithms, OfUnknownNamesAreRefused) {
  expect_error([] { make_cpu_context({.conv_algorithm = "fft"}); }, Fault::config,
               "\"fft\": expected one of bn_fused_grad, depthwise,");
}

// A gradient that turns out dense goes on to the next algorithm.
TEST(ConvAlgorithms, ForSparseGradientsDeclineDenseOnes) {
  const cpu::ConvShape& o = kShapes[17];
  const auto context = make_cpu_context({.threads = 2});
  for (const bool sparse : {false, true}) {
    const Problem<float> problem(o, sparse);
    std::vector<float> dw(problem.w.size()), expected = dw;
    cpu::ConvOperands<float> operands{.x = problem.x.data(), .dy = problem.dy.data(), .dw = dw.data()};
    cpu::run_conv(*context, cpu::ConvPass::wgrad, o, operands);
    const auto rows = cpu::nonzero_rows(o, problem.dy.data());
    ASSERT_EQ(rows.has_value(), sparse);
    operands.dw = expected.data();
    if (rows) operands.nonzero_rows = &*rows;
    (rows ? cpu::SparseGrad<float>::wgrad : cpu::Winograd<float>::wgrad)(*context, o, operands);
    EXPECT_EQ(dw, expected);
  }
}

}  // namespace
}  // namespace dtrain
