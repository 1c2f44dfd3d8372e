// AVX2 and FMA: 16 registers of 8 floats.
#pragma once

#include "libdtrain/cpu/kernels/isa/x86.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kLanes = 8, kRegisters = 16;
using Floats = VectorOf<kLanes>::Type;
using Ints = VectorOf<kLanes>::Ints;

[[gnu::always_inline]] inline Ints widen_bytes(const uint8_t* from) {
  return reinterpret_cast<Ints>(_mm256_cvtepu8_epi32(_mm_loadu_si64(from)));
}
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

// Rounds to nearest, ties to even. Clamped to kMaxByte first: beyond 32 bits the result would be the least integer, as
// for a NaN.
[[gnu::always_inline]] inline __m256i nearest_ints(Floats value) {
  return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(kMaxByte), value));
}
// Rounds and saturates to 0 ... 255; a NaN becomes 0.
[[gnu::always_inline]] inline void store(uint8_t* to, Floats value) {
  const __m256i rounded = nearest_ints(value);
  const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(half, half));
}
template <bool>
[[gnu::always_inline]] inline void store_both(uint8_t* to, Floats first, Floats second) {
  const __m256i words = _mm256_packs_epi32(nearest_ints(first), nearest_ints(second));
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(ordered));
}

// VPDPBUSD in three instructions: sum + the dot products of quads of unsigned and signed bytes. VPMADDUBSW adds pairs
// in 16 bits, which saturate beyond 128.5 * 255: kMaxPairSum bounds the sum of the signed bytes of a pair. Widening
// both sides to 16 bits would allow any operands at 1.5 times the time.
inline constexpr int kMaxPairSum = 128;
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints a, Ints b) {
  const __m256i pairs = _mm256_maddubs_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  return sum + reinterpret_cast<Ints>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

}  // namespace dtrain::cpu::DT_ISA
