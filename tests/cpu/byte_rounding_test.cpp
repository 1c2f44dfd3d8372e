#include "libdtrain/cpu/byte_rounding.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/cpu/drawn.h"
#include "tests/testing.h"

namespace dtrain::cpu {
namespace {

using Filter = std::vector<float>;

// As drawn, evenly, or a few far from most.
Filter filter_of(int64_t count, uint64_t stream, bool has_outliers) {
  Filter w = drawn(count, stream);
  for (float& value : w) value *= has_outliers ? 0.3f * std::pow(std::fabs(value), 5.0f) : 0.02f;
  return w;
}

TEST(ByteRounding, KeepsNumbersSumsAndPairs) {
  for (const int most_of_pair : {128, 254})
    for (const bool has_outliers : {false, true})
      for (const int64_t count : {2, 4, 12, 64, 4608})
        for (uint64_t stream = 0; stream < 20; ++stream) {
          SCOPED_TRACE(concat(most_of_pair, " ", has_outliers, " ", count, " ", stream));
          const Filter w = filter_of(count, stream, has_outliers);
          const auto [level, numbers] = rounded_filter(w, most_of_pair);
          ASSERT_EQ(numbers.size(), w.size());
          double most = 0, pair = 0, lost = 0;
          for (size_t i = 0; i < w.size(); ++i) {
            const double exact = double{w[i]} / level;
            ASSERT_LE(std::abs(numbers[i]), 127);
            ASSERT_LE(std::abs(numbers[i] + numbers[i ^ 1]), most_of_pair);
            ASSERT_LT(std::fabs(exact - numbers[i]), 1 + 1e-4) << i;
            most = std::max(most, std::fabs(double{w[i]}));
            pair = std::max(pair, std::fabs(double{w[i]} + w[i ^ 1]));
            lost += exact - numbers[i];
          }
          EXPECT_FLOAT_EQ(level, static_cast<float>(std::max(most / 127, pair / most_of_pair)));
          if (count >= 64) {
            EXPECT_LT(std::fabs(lost), 0.501);
          }
        }
}

// Only as many are not the nearest as the sum asks for.
TEST(ByteRounding, MovesFewNumbers) {
  const Filter w = filter_of(4608, 1, false);
  const auto [level, numbers] = rounded_filter(w, 254);
  double lost = 0, moved = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const float nearest = std::nearbyint(w[i] / level);
    lost += w[i] / level - nearest;
    moved += numbers[i] != nearest;
  }
  EXPECT_GT(std::fabs(lost), 1);
  EXPECT_EQ(moved, std::round(std::fabs(lost)));
}

TEST(ByteRounding, WholeNumbersStay) {
  const Filter w = {127, 1, -127, -1, 64, 64, -64, -64, 0, 0, 127, -127, 3, 125};
  for (const int most_of_pair : {128, 254}) {
    const auto [level, numbers] = rounded_filter(w, most_of_pair);
    EXPECT_EQ(level, 1);
    EXPECT_EQ(Filter(numbers.begin(), numbers.end()), w);
  }
}

TEST(ByteRounding, WhatIsNearlyNothingBecomesZeros) {
  const auto [level, numbers] = rounded_filter(Filter{FLT_MIN / 2, -FLT_MIN, 0, FLT_TRUE_MIN}, 128);
  EXPECT_EQ(level, 1);
  EXPECT_EQ(numbers, std::vector<int8_t>(4, 0));
}

TEST(ByteRounding, TakesTheLargestNumbersAndWhatIsNone) {
  const auto [level, numbers] = rounded_filter(Filter{3e38f, 3e38f, 1e38f, -1e38f}, 128);
  EXPECT_EQ(numbers, (std::vector<int8_t>{64, 64, 21, -21}));
  EXPECT_FLOAT_EQ(level, 3e38f / 64);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const float value : {nan, infinity, -infinity})
    EXPECT_EQ(rounded_filter(Filter{value, 1, 0.3f, 0.7f}, 128).numbers.size(), 4U);
}

}  // namespace
}  // namespace dtrain::cpu
