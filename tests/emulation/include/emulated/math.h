// Bit and arithmetic intrinsics. Approximate ones are exact here, or as close as the C library's.
#pragma once

#include <math.h>

#include <bit>
#include <cstdint>

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline float rsqrtf(float x) { return static_cast<float>(1 / ::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1 / ::sqrt(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return ::sqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __expf(float x) { return ::expf(x); }
inline float __logf(float x) { return ::logf(x); }
inline float __powf(float x, float y) { return ::powf(x, y); }
inline float __fmaf_rn(float x, float y, float z) { return ::fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
inline int __float2int_rn(float x) { return static_cast<int>(::rintf(x)); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

// Never contracted into an FMA: the empty asm hides the operand's origin.
inline float __fmul_rn(float x, float y) {
  float product = x * y;
  __asm__("" : "+x"(product));
  return product;
}
inline float __fadd_rn(float x, float y) {
  __asm__("" : "+x"(x), "+x"(y));
  return x + y;
}
inline float __fsub_rn(float x, float y) { return __fadd_rn(x, -y); }

// In the global namespace in device code.
#define DT_EMULATED_MIN_MAX(type)                              \
  constexpr type min(type a, type b) { return b < a ? b : a; } \
  constexpr type max(type a, type b) { return a < b ? b : a; }
DT_EMULATED_MIN_MAX(int)
DT_EMULATED_MIN_MAX(unsigned)
DT_EMULATED_MIN_MAX(long)
DT_EMULATED_MIN_MAX(unsigned long)
DT_EMULATED_MIN_MAX(long long)
DT_EMULATED_MIN_MAX(unsigned long long)
#undef DT_EMULATED_MIN_MAX
// As fminf and fmaxf: the operand that is not NaN.
inline float min(float a, float b) { return ::fminf(a, b); }
inline float max(float a, float b) { return ::fmaxf(a, b); }
inline double min(double a, double b) { return ::fmin(a, b); }
inline double max(double a, double b) { return ::fmax(a, b); }
