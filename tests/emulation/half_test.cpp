// Emulated 16-bit types against the compiler's _Float16 and against nearest neighbours.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace dtrain {
namespace {

__extension__ using Float16 = _Float16;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Floats of every exponent and sign, with significands at and half way between representable ones.
std::vector<float> hard_cases() {
  std::vector<float> values;
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (const uint32_t fraction :
         {0x000000u, 0x000001u, 0x001000u, 0x001001u, 0x002000u, 0x003000u, 0x007fffu, 0x008000u, 0x008001u, 0x00ffffu,
          0x010000u, 0x018000u, 0x2aaaaau, 0x400000u, 0x5a5a5au, 0x7fdfffu, 0x7fe000u, 0x7fefffu, 0x7ff000u, 0x7fffffu})
      for (const uint32_t sign : {0u, 0x80000000u})
        values.push_back(std::bit_cast<float>(sign | exponent << 23 | fraction));
  return values;
}

TEST(Half, WidensEveryPatternExactlyAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = __half2float(__ushort_as_half(pattern));
    const auto expected = static_cast<float>(std::bit_cast<Float16>(pattern));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(__half_as_ushort(__float2half_rn(value)), 0x7fff);
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected)) << bits;
      EXPECT_EQ(__half_as_ushort(__float2half_rn(value)), pattern);
    }
  }
}

TEST(Half, RoundsToTheNearestAndToEven) {
  for (const float value : hard_cases()) {
    if (std::isnan(value)) continue;
    EXPECT_EQ(__half_as_ushort(__float2half_rn(value)), std::bit_cast<uint16_t>(static_cast<Float16>(value))) << value;
  }
  EXPECT_EQ(__half2float(65519.0f), 65504.0f);
  EXPECT_EQ(__half2float(65520.0f), kInfinity);
  EXPECT_EQ(__half2float(0x1p-25f), 0.0f);
  EXPECT_EQ(__half2float(0x1.8p-25f), 0x1p-24f);
}

TEST(BFloat16, WidensEveryPatternExactlyAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = __bfloat162float(__ushort_as_bfloat16(pattern));
    if ((bits & 0x7fff) > 0x7f80) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16_rn(value)), 0x7fff);
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
      EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16_rn(value)), pattern);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndToEven) {
  for (const float value : hard_cases()) {
    if (!std::isfinite(value)) continue;
    const uint32_t below = std::bit_cast<uint32_t>(value) >> 16, above = below + 1;  // by magnitude
    const auto value_of = [](uint32_t bits) {                                        // beyond the largest is infinity
      return (bits & 0x7fff) == 0x7f80 ? std::copysign(0x1p128, (bits & 0x8000) != 0 ? -1 : 1)
                                       : double{std::bit_cast<float>(bits << 16)};
    };
    const double to_below = std::abs(value - value_of(below)), to_above = std::abs(value - value_of(above));
    const uint32_t even = below % 2 == 0 ? below : above;
    const uint32_t expected = to_below < to_above ? below : to_above < to_below ? above : even;
    EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16_rn(value)), expected) << value;
  }
}

TEST(Pairs, HoldTwo) {
  const float2 of_bf16 = __bfloat1622float2(__floats2bfloat162_rn(1.5f, -kInfinity));
  EXPECT_EQ(of_bf16.x, 1.5f);
  EXPECT_EQ(of_bf16.y, -kInfinity);
  const __half2 pair = __float22half2_rn(make_float2(kNan, 0.25f));
  EXPECT_TRUE(std::isnan(__low2float(pair)));
  EXPECT_EQ(__high2float(pair), 0.25f);
  EXPECT_EQ(sizeof(__half2), 4u);
  EXPECT_EQ(alignof(__nv_bfloat162), 4u);
}

}  // namespace
}  // namespace dtrain
