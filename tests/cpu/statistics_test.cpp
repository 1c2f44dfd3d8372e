// The sums that convolutions make of their results against those of the results in double precision.
#include "libdtrain/cpu/gemm/statistics.h"

#include <cmath>
#include <string>
#include <vector>

#include "dtrain/ops/conv2d.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/conv_bn_fusion.h"
#include "tests/cpu/drawn.h"
#include "tests/cpu/instruction_sets.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

struct SumsCase {
  std::string name;
  Shape x, w;
  Conv2dOptions options;
  float offset = 0;  // of x
  float first = 1;   // the first pixel of x is so many times as large
};

std::vector<SumsCase> cases() {
  return {
      {"1x1", {3, 9, 11, 64}, {128, 1, 1, 64}, {}},
      {"an odd panel", {2, 9, 11, 64}, {160, 1, 1, 64}, {}},
      {"more pixels than are summed in float", {2, 40, 40, 64}, {64, 1, 1, 64}, {}},
      {"far from zero", {2, 13, 13, 64}, {64, 1, 1, 64}, {}, 1000},
      {"an outlier at first", {2, 60, 60, 64}, {64, 1, 1, 64}, {}, 0, 1e5f},
      {"3x3, stride 2", {2, 15, 15, 64}, {64, 3, 3, 64}, {.stride = 2, .padding = 1}},
      {"3x3 by Winograd's algorithm", {4, 14, 14, 64}, {64, 3, 3, 64}, {.padding = 1}},
      {"fewer pixels than panels", {1, 3, 3, 64}, {256, 1, 1, 64}, {}},
      {"filters in parts", {1, 5, 5, 256}, {256, 3, 3, 256}, {.stride = 2, .padding = 1}},
  };
}

Moments moments_of_channel(const std::vector<double>& y, int64_t channel, int64_t channels) {
  Moments all;
  for (auto i = static_cast<size_t>(channel); i < y.size(); i += static_cast<size_t>(channels))
    all = merge(all, {1, y[i], 0});
  return all;
}

// Sums of bf16 are those of the values before they are rounded to 8 digits.
void expect_sums(Context& context, const SumsCase& test, DType dtype) {
  Array images = rounded(random_array(test.x, 1), dtype);
  for (double& value : images.values) value += test.offset;
  for (size_t i = 0; i < static_cast<size_t>(test.x[3]); ++i) images.values[i] *= test.first;
  const Tensor x = to_device(context, images, dtype);
  const Tensor w = to_device(context, rounded(random_array(test.w, 2), dtype), dtype);
  const Shape shape = conv2d_shape(test.x, test.w, test.options);
  const Tensor y = context.empty(shape, dtype), plain = context.empty(shape, dtype);
  const ChannelStatistics sums = cpu::conv2d_with_statistics(context, x, {}, w, test.options, y, 1);
  ASSERT_TRUE(sums.sum) << test.name;
  cpu::conv2d(context, x, w, {}, test.options, plain);
  const Array found = to_host(context, y);
  EXPECT_EQ(found.values, to_host(context, plain).values) << test.name;
  const int64_t channels = shape[3], count = shape.count() / channels;
  for (int64_t i = 0; i < channels; ++i) {
    const Moments expected = moments_of_channel(found.values, i, channels);
    const Moments moments =
        moments_about(sums.pivot.data<float>()[i], {sums.sum.data<float>()[i], sums.square.data<float>()[i]},
                      static_cast<double>(count));
    const double rounding = dtype == DType::bf16 ? 1.0 / 256 : 1e-6;
    const double deviation = std::sqrt(expected.deviation / expected.count);
    EXPECT_NEAR(moments.mean, expected.mean, rounding * (deviation + std::abs(expected.mean))) << test.name << " " << i;
    EXPECT_NEAR(moments.deviation, expected.deviation, 10 * rounding * expected.deviation) << test.name << " " << i;
  }
}

TEST(FusedStatistics, AreThoseOfTheResult) {
  for (const CpuIsa isa : instruction_sets())
    for (const int threads : {1, 3}) {
      const auto context = context_of(isa, threads);
      SCOPED_TRACE(testing::Message() << name_of(isa) << ", " << threads << " threads");
      for (const SumsCase& test : cases()) {
        expect_sums(*context, test, DType::f32);
        if (context->kernels().capabilities.bf16 && test.offset == 0 && test.first == 1)
          expect_sums(*context, test, DType::bf16);
      }
    }
}

TEST(FusedStatistics, AreNotMadeByOtherAlgorithms) {
  const auto plain = make_cpu_context(), forced = make_cpu_context({.conv_algorithm = "onednn"});
  const auto has_sums = [](Context& context, int64_t filters) {
    const Tensor x = context.zeros({1, 4, 4, 64}), w = context.zeros({filters, 1, 1, 64}),
                 y = context.empty({1, 4, 4, filters});
    return bool{cpu::conv2d_with_statistics(context, x, {}, w, {}, y, 1).sum};
  };
  EXPECT_TRUE(has_sums(*plain, 64));
  EXPECT_FALSE(has_sums(*plain, 24)) << "filters in parts of a panel";
  EXPECT_FALSE(has_sums(*forced, 64)) << "oneDNN fuses no statistics";
}

TEST(FusedStatistics, TakeWholeBlocks) {
  const auto context = make_cpu_context();
  EXPECT_THROW(cpu::FusedStatistics(*context, 24), Error);
}

}  // namespace
}  // namespace dtrain
