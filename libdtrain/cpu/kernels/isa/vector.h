// SIMD vector types, in GCC's vector extension. Everything here is in the namespace DT_ISA, which the build names after
// the instruction set being compiled: the linker keeps one of several inline functions of one name, whichever it likes.
#pragma once

#include <cstdint>
#include <cstring>

#include "dtrain/core/float16.h"

namespace dtrain::cpu::DT_ISA {

template <int lanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(lanes * sizeof(float))));  // `using` drops the attribute of such a size
  typedef int32_t Ints __attribute__((vector_size(lanes * sizeof(int32_t))));
  typedef uint32_t Bits __attribute__((vector_size(lanes * sizeof(uint32_t))));
  typedef uint16_t Halves __attribute__((vector_size(lanes * sizeof(uint16_t))));
};
template <>
struct VectorOf<1> {
  using Type = float;
  using Ints = int32_t;
  using Bits = uint32_t;
  using Halves = uint16_t;
};
template <class V>
using Lanes = VectorOf<sizeof(V) / sizeof(float)>;

inline constexpr float kMaxByte = 255;

// Reads a value of any type, a vector among others, from an address without alignment.
template <class V>
[[gnu::always_inline]] inline V load_unaligned(const void* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Zero-extends 16 bits to 32. GCC 12 widens longer vectors in two halves: AVX2 and AVX-512 have overloads for these.
[[gnu::always_inline]] inline uint32_t widen(uint16_t half) { return half; }
template <class Halves>
[[gnu::always_inline]] inline auto widen(Halves halves) {
  return __builtin_convertvector(halves, typename VectorOf<sizeof(Halves) / sizeof(uint16_t)>::Bits);
}

// Rounds to bf16: to nearest, ties to even; NaN stays NaN, subnormals are kept.
template <class V>
[[gnu::always_inline]] inline typename Lanes<V>::Halves round_to_bf16(V value) {
  const auto bits = __builtin_bit_cast(typename Lanes<V>::Bits, value);
  // Half a unit in the last place, minus one where that place is even.
  const typename Lanes<V>::Bits rounded = value == value ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x400000u;
  if constexpr (sizeof(V) == sizeof(float))
    return static_cast<uint16_t>(rounded >> 16);
  else
    return __builtin_convertvector(rounded >> 16, typename Lanes<V>::Halves);
}

// Transposes 8 x 8 words.
[[gnu::always_inline]] inline void transpose(VectorOf<8>::Type (&v)[8]) {
  VectorOf<8>::Type two[8], four[8];
  for (int i = 0; i < 8; i += 2) {
    two[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    two[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int half = 0; half < 2; ++half) {
      const auto low = two[i + half], high = two[i + 2 + half];
      four[i + 2 * half] = __builtin_shufflevector(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
      four[i + 2 * half + 1] = __builtin_shufflevector(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    v[i] = __builtin_shufflevector(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace dtrain::cpu::DT_ISA
