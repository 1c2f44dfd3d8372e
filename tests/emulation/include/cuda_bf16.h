// Emulated bfloat16: upper half of an f32, rounded to nearest even.
#pragma once

#include <math.h>

#include <bit>
#include <cstdint>

#include "emulated/execution.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  __nv_bfloat16() = default;
  constexpr __nv_bfloat16(__nv_bfloat16_raw raw) : bits_(raw.x) {}  // NOLINT(google-explicit-constructor)
  __nv_bfloat16(float x) : bits_(round(x)) {}                       // NOLINT(google-explicit-constructor)
  explicit __nv_bfloat16(double x) : __nv_bfloat16(static_cast<float>(x)) {}
  explicit __nv_bfloat16(int x) : __nv_bfloat16(static_cast<float>(x)) {}
  operator float() const { return std::bit_cast<float>(uint32_t{bits_} << 16); }  // NOLINT(google-explicit-constructor)
  constexpr operator __nv_bfloat16_raw() const { return {bits_}; }                // NOLINT(google-explicit-constructor)

 private:
  static unsigned short round(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    if (x != x) return 0x7fff;  // a GPU's canonical NaN
    return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }

  unsigned short bits_;
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

template <>
inline constexpr bool emulation::can_shuffle<__nv_bfloat16> = true;
template <>
inline constexpr bool emulation::can_shuffle<__nv_bfloat162> = true;

inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return static_cast<__nv_bfloat16_raw>(x).x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __nv_bfloat16_raw{x}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
inline float __low2float(__nv_bfloat162 v) { return v.x; }
inline float __high2float(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) { return ::fmaxf(a, b); }
