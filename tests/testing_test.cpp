// Tests of the test utilities.
#include "tests/testing.h"

#include <cmath>
#include <type_traits>

namespace dtrain {
namespace {

using Values = std::vector<double>;

Values rounded(const Values& values, DType dtype) {
  return rounded(Array({static_cast<int64_t>(values.size())}, values), dtype).values;
}

TEST(Rounding, Bf16IsToNearestTiesToEven) {
  const double unit = 0x1p-7;  // for [1, 2)
  EXPECT_EQ(
      rounded({1, 1 + unit, 1 + 0.49 * unit, 1 + 0.5 * unit, 1 + 1.5 * unit, -1 - 1.5 * unit, 0x1p-130}, DType::bf16),
      (Values{1, 1 + unit, 1, 1, 1 + 2 * unit, -1 - 2 * unit, 0x1p-130}));
  EXPECT_EQ(rounded({3.4e38f, INFINITY}, DType::bf16), (Values{INFINITY, INFINITY}));
  EXPECT_TRUE(std::isnan(rounded({NAN}, DType::bf16)[0]));
}

// Bf16(3.7f) would interpret 3 as bits.
static_assert(!std::is_constructible_v<Bf16, float> && !std::is_constructible_v<Bf16, int> &&
              !std::is_constructible_v<Bf16, double> && std::is_constructible_v<Bf16, uint16_t>);
static_assert(std::is_trivially_copyable_v<Bf16> && sizeof(Bf16) == 2);

TEST(Rounding, F16IsToNearestTiesToEven) {
  const double unit = 0x1p-10;
  EXPECT_EQ(rounded({1, 1 + unit, 1 + 0.5 * unit, 1 + 1.5 * unit, 2 - 0.4 * unit, -1 - 1.5 * unit}, DType::f16),
            (Values{1, 1 + unit, 1, 1 + 2 * unit, 2, -1 - 2 * unit}));
  EXPECT_EQ(rounded({65504, 65519, 65520, -INFINITY}, DType::f16), (Values{65504, 65504, INFINITY, -INFINITY}));
  // Subnormals are multiples of 2^-24; the largest rounds up to a normal number.
  EXPECT_EQ(rounded({0x1p-24, 0x1p-25, 0x1.8p-24, 0x3p-25, 0x1p-14 - 0x1p-26}, DType::f16),
            (Values{0x1p-24, 0, 0x1p-23, 0x1p-23, 0x1p-14}));
  EXPECT_TRUE(std::isnan(rounded({NAN}, DType::f16)[0]));
}

TEST(Rounding, SurvivesTheDevice) {
  for (const auto& context : devices())
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const Array exact = rounded(random_array({3, 5}, 1, -100, 100), dtype);
      EXPECT_EQ(to_host(*context, to_device(*context, exact, dtype)).values, exact.values);
    }
}

}  // namespace
}  // namespace dtrain
