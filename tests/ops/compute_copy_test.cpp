// Compute copies of weights: types and padded channels.
#include "libdtrain/ops/compute_copy.h"

#include <cmath>
#include <limits>

#include "tests/testing.h"

namespace dtrain {
namespace {

std::vector<DType> types_of(const Context& context) {
  if (context.is_cpu()) return {DType::f32, DType::bf16};
  return {DType::f32, DType::bf16, DType::f16};
}

TEST(ComputeCopy, RoundsToNearestEven) {
  Array special({13}, {1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, -1 - 0x1p-9, 65519, 65520, -70000, 0x1p-25,
                       0x3p-25, 0x1p-24, 0.0, -std::numeric_limits<double>::infinity()});
  for (const auto& context : devices())
    for (const DType dtype : types_of(*context))
      for (const Array& x :
           {special, random_array({1}, 1), random_array({7}, 2), random_array({5, 1029}, 3, -300, 300)}) {
        poison(*context);
        const Tensor y = context->empty(x.shape, dtype);
        round_values(*context, to_device(*context, x), y);
        EXPECT_EQ(to_host(*context, y).values, rounded(x, dtype).values) << name_of(dtype) << ' ' << x.shape;
      }
}

TEST(ComputeCopy, NotANumberStaysOne) {
  for (const auto& context : devices())
    for (const DType dtype : types_of(*context)) {
      const Tensor y = context->empty({5}, dtype);
      round_values(*context, to_device(*context, Array({5}, NAN)), y);
      for (const double value : to_host(*context, y).values) EXPECT_TRUE(std::isnan(value)) << name_of(dtype);
    }
}

TEST(ComputeCopy, PadsChannelsWithZeros) {
  for (const auto& context : devices())
    for (const DType dtype : types_of(*context))
      for (const int64_t padded : {3, 4, 8}) {
        poison(*context);
        const Array x = random_array({5, 7, 3, 3}, 1);
        const Tensor y = context->empty({5, 7, 3, padded}, dtype);
        pad_channels(*context, to_device(*context, x), y);
        const Array actual = to_host(*context, y), expected = rounded(x, dtype);
        for (int64_t tap = 0; tap < 5 * 7 * 3; ++tap)
          for (int64_t c = 0; c < padded; ++c)
            EXPECT_EQ(actual[tap * padded + c], c < 3 ? expected[tap * 3 + c] : 0) << name_of(dtype) << ' ' << tap;
      }
}

TEST(ComputeCopy, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  expect_error([&] { round_values(*context, context->zeros({3}), context->zeros({4})); }, Fault::config,
               "[3] into [4]");
  const Tensor x = context->zeros({2, 1, 1, 3});
  expect_error([&] { pad_channels(*context, x, context->zeros({2, 1, 1, 2})); }, Fault::config, "into [2, 1, 1, 2]");
  expect_error([&] { pad_channels(*context, x, context->zeros({2, 1, 2, 4})); }, Fault::config, "into [2, 1, 2, 4]");
  expect_error([&] { round_values(*context, x, context->zeros(x.shape(), DType::f16)); }, Fault::config, "f16");
}

}  // namespace
}  // namespace dtrain
