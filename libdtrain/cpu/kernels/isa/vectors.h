// Vectors of floats as wide as the registers of the instruction set that a kernel is compiled for, in GCC's vector
// extension. The namespace DT_ISA, which the build names after that set, keeps what is compiled for one set apart from
// what is compiled for another: the linker keeps one of several inline functions of one name, whichever it likes.
#pragma once

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "libdtrain/core/float16.h"

namespace dtrain::cpu::DT_ISA {

#ifdef __AVX512F__
inline constexpr int kLanes = 16;
#else
inline constexpr int kLanes = 8;
#endif

template <int lanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(lanes * sizeof(float))));  // `using` drops the attribute of such a size
  typedef uint32_t Bits __attribute__((vector_size(lanes * sizeof(uint32_t))));
  typedef uint16_t Halves __attribute__((vector_size(lanes * sizeof(uint16_t))));
};
template <>
struct VectorOf<1> {
  using Type = float;
  using Bits = uint32_t;
  using Halves = uint16_t;
};
using Floats = VectorOf<kLanes>::Type;
template <class V>
using Lanes = VectorOf<sizeof(V) / sizeof(float)>;

[[gnu::always_inline]] inline VectorOf<4>::Bits widen(VectorOf<4>::Halves halves) {
  return __builtin_convertvector(halves, VectorOf<4>::Bits);
}
// GCC 12 widens longer vectors in two halves.
[[gnu::always_inline]] inline VectorOf<8>::Bits widen(VectorOf<8>::Halves halves) {
  return reinterpret_cast<VectorOf<8>::Bits>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
}
#ifdef __AVX512F__
[[gnu::always_inline]] inline VectorOf<16>::Bits widen(VectorOf<16>::Halves halves) {
  // The form without a mask makes GCC 12 warn about an operand that it does not read.
  return reinterpret_cast<VectorOf<16>::Bits>(_mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(halves)));
}
#endif

// Elements need not be aligned. Those of bf16 are floats in registers, exactly, and rounded to nearest, ties to even,
// where they are stored. A NaN stays one. What is subnormal becomes zero where avx512_bf16 stores a vector of 512 bits,
// and stays what it is in all other stores.
template <class V = Floats>
[[gnu::always_inline]] inline V load(const float* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V = Floats>
[[gnu::always_inline]] inline V load(const Bf16* from) {
  typename Lanes<V>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  typename Lanes<V>::Bits bits;
  if constexpr (sizeof(V) == sizeof(float))
    bits = halves;
  else
    bits = widen(halves);
  bits <<= 16;
  V value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class V>
[[gnu::always_inline]] inline void store(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}
template <class V>
[[gnu::always_inline]] inline void store(Bf16* to, V value) {
#ifdef __AVX512BF16__
  if constexpr (sizeof(V) == sizeof(__m512)) {
    const __m256bh rounded = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(value));
    std::memcpy(to, &rounded, sizeof rounded);
    return;
  }
#endif
  typename Lanes<V>::Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  // Half of the last place, one less where that place is even.
  const typename Lanes<V>::Bits rounded = value == value ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x400000u;
  typename Lanes<V>::Halves halves;
  if constexpr (sizeof(V) == sizeof(float))
    halves = static_cast<uint16_t>(rounded >> 16);
  else
    halves = __builtin_convertvector(rounded >> 16, typename Lanes<V>::Halves);
  std::memcpy(to, &halves, sizeof halves);
}

// Stores past the caches what is too large to stay there. `to` is aligned to as many bytes as the elements of a vector
// take; a single element is stored like any other. The caller calls fence() before others read what it has stored.
template <class V, class T>
[[gnu::always_inline]] inline void stream(T* to, V value) {
  if constexpr (sizeof(V) == sizeof(float)) {
    store(to, value);
  } else {
    alignas(sizeof(V)) T elements[sizeof(V) / sizeof(float)];
    store(elements, value);
    constexpr size_t kBytes = sizeof elements;
#ifdef __AVX512F__
    if constexpr (kBytes == sizeof(__m512i)) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_load_si512(elements));
      return;
    }
#endif
    if constexpr (kBytes == sizeof(__m256i))
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), _mm256_load_si256(reinterpret_cast<__m256i*>(elements)));
    else if constexpr (kBytes == sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_load_si128(reinterpret_cast<__m128i*>(elements)));
  }
}
[[gnu::always_inline]] inline void fence() { _mm_sfence(); }

// Two vectors one after the other, stored or streamed: those of bf16 in one go, where 32 of them fill a register.
template <bool kNonTemporal, class T>
[[gnu::always_inline]] inline void store_both(T* to, Floats first, Floats second) {
#ifdef __AVX512BF16__
  if constexpr (sizeof(T) == sizeof(Bf16)) {
    const auto rounded = reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first)));
    kNonTemporal ? _mm512_stream_si512(reinterpret_cast<__m512i*>(to), rounded) : _mm512_storeu_si512(to, rounded);
    return;
  }
#endif
  kNonTemporal ? stream(to, first) : store(to, first);
  kNonTemporal ? stream(to + kLanes, second) : store(to + kLanes, second);
}

}  // namespace dtrain::cpu::DT_ISA
