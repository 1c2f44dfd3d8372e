// Emulated half: IEEE 754 binary16 with subnormals, rounded to nearest even.
#pragma once

#include <math.h>

#include <bit>
#include <cstdint>

#include "emulated/execution.h"

struct __half_raw {
  unsigned short x;
};

struct __half {
  __half() = default;
  constexpr __half(__half_raw raw) : bits_(raw.x) {}  // NOLINT(google-explicit-constructor)
  __half(float x) : bits_(round(x)) {}                // NOLINT(google-explicit-constructor)
  explicit __half(double x) : __half(static_cast<float>(x)) {}
  explicit __half(int x) : __half(static_cast<float>(x)) {}
  operator float() const { return widen(bits_); }            // NOLINT(google-explicit-constructor)
  constexpr operator __half_raw() const { return {bits_}; }  // NOLINT(google-explicit-constructor)

 private:
  static unsigned short round(float x) {
    constexpr float kSmallestNormal = 0x1p-14f, kOverflow = 65520;  // half way between the largest half and 65536
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    const float absolute = std::bit_cast<float>(magnitude);
    if (x != x) return 0x7fff;  // a GPU's canonical NaN
    if (absolute >= kOverflow) return static_cast<unsigned short>(sign | 0x7c00);
    // Adding 0.5f, whose last place is a subnormal half's, rounds to it.
    if (absolute < kSmallestNormal)
      return static_cast<unsigned short>(sign | (std::bit_cast<uint32_t>(absolute + 0.5f) - 0x3f000000));
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<unsigned short>(sign | ((rounded - 0x38000000) >> 13));
  }
  static float widen(unsigned short half) {
    const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
    const float magnitude = exponent == 0 ? static_cast<float>(fraction) * 0x1p-24f
                                          : std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }

  unsigned short bits_;
};

struct alignas(4) __half2 {
  __half x, y;
};
using half = __half;
using half2 = __half2;

template <>
inline constexpr bool emulation::can_shuffle<__half> = true;
template <>
inline constexpr bool emulation::can_shuffle<__half2> = true;

inline float __half2float(__half x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline __half __float2half(float x) { return x; }
inline unsigned short __half_as_ushort(__half x) { return static_cast<__half_raw>(x).x; }
inline __half __ushort_as_half(unsigned short x) { return __half_raw{x}; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half __hmax(__half a, __half b) { return ::fmaxf(a, b); }
