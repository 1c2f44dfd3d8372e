#include "libdtrain/cpu/conv/weight_rounding.h"

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
  for (const int max_pair_sum : {128, 254})
    for (const bool has_outliers : {false, true})
      for (const int64_t count : {2, 4, 12, 64, 4608})
        for (uint64_t stream = 0; stream < 20; ++stream) {
          SCOPED_TRACE(concat(max_pair_sum, " ", has_outliers, " ", count, " ", stream));
          const Filter w = filter_of(count, stream, has_outliers);
          const auto [step, integers] = quantize_filter(w, max_pair_sum);
          ASSERT_EQ(integers.size(), w.size());
          double most = 0, pair = 0, lost = 0;
          for (size_t i = 0; i < w.size(); ++i) {
            const double exact = double{w[i]} / step;
            ASSERT_LE(std::abs(integers[i]), 127);
            ASSERT_LE(std::abs(integers[i] + integers[i ^ 1]), max_pair_sum);
            ASSERT_LT(std::fabs(exact - integers[i]), 1 + 1e-4) << i;
            most = std::max(most, std::fabs(double{w[i]}));
            pair = std::max(pair, std::fabs(double{w[i]} + w[i ^ 1]));
            lost += exact - integers[i];
          }
          EXPECT_FLOAT_EQ(step, static_cast<float>(std::max(most / 127, pair / max_pair_sum)));
          if (count >= 64) {
            EXPECT_LT(std::fabs(lost), 0.501);
          }
        }
}

// Only as many are not the nearest as the sum asks for.
TEST(ByteRounding, MovesFewNumbers) {
  const Filter w = filter_of(4608, 1, false);
  const auto [step, integers] = quantize_filter(w, 254);
  double lost = 0, moved = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const float nearest = std::nearbyint(w[i] / step);
    lost += w[i] / step - nearest;
    moved += integers[i] != nearest;
  }
  EXPECT_GT(std::fabs(lost), 1);
  EXPECT_EQ(moved, std::round(std::fabs(lost)));
}

TEST(ByteRounding, WholeNumbersStay) {
  const Filter w = {127, 1, -127, -1, 64, 64, -64, -64, 0, 0, 127, -127, 3, 125};
  for (const int max_pair_sum : {128, 254}) {
    const auto [step, integers] = quantize_filter(w, max_pair_sum);
    EXPECT_EQ(step, 1);
    EXPECT_EQ(Filter(integers.begin(), integers.end()), w);
  }
}

TEST(ByteRounding, WhatIsNearlyNothingBecomesZeros) {
  const auto [step, integers] = quantize_filter(Filter{FLT_MIN / 2, -FLT_MIN, 0, FLT_TRUE_MIN}, 128);
  EXPECT_EQ(step, 1);
  EXPECT_EQ(integers, std::vector<int8_t>(4, 0));
}

TEST(ByteRounding, TakesTheLargestNumbersAndWhatIsNone) {
  const auto [step, integers] = quantize_filter(Filter{3e38f, 3e38f, 1e38f, -1e38f}, 128);
  EXPECT_EQ(integers, (std::vector<int8_t>{64, 64, 21, -21}));
  EXPECT_FLOAT_EQ(step, 3e38f / 64);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const float value : {nan, infinity, -infinity})
    EXPECT_EQ(quantize_filter(Filter{value, 1, 0.3f, 0.7f}, 128).integers.size(), 4U);
}

}  // namespace
}  // namespace dtrain::cpu
