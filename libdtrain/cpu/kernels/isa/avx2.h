// AVX2 and FMA: 16 registers of 8 floats.
#pragma once

#include <immintrin.h>

#include "libdtrain/cpu/kernels/isa/vector.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kLanes = 8, kRegisters = 16;
using Floats = VectorOf<kLanes>::Type;
using Ints = __m256i;

[[gnu::always_inline]] inline VectorOf<8>::Bits widen(VectorOf<8>::Halves halves) {
  return reinterpret_cast<VectorOf<8>::Bits>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
}
[[gnu::always_inline]] inline VectorOf<kLanes>::Bits widen_bytes(const uint8_t* from) {
  return reinterpret_cast<VectorOf<kLanes>::Bits>(_mm256_cvtepu8_epi32(_mm_loadu_si64(from)));
}
[[gnu::always_inline]] inline Ints load_ints(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline Ints broadcast(int32_t x) { return _mm256_set1_epi32(x); }
[[gnu::always_inline]] inline Floats to_floats(Ints x) { return _mm256_cvtepi32_ps(x); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Floats bytes_to_floats(const uint8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

// Rounds to nearest, ties to even. Clamped to kMaxByte first: beyond 32 bits the result would be the least integer, as
// for a NaN.
[[gnu::always_inline]] inline Ints nearest_ints(Floats value) {
  return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(kMaxByte), value));
}
// Rounds and saturates to 0 ... 255; a NaN becomes 0.
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  const __m256i rounded = nearest_ints(value);
  const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(half, half));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats first, Floats second) {
  const __m256i words = _mm256_packs_epi32(nearest_ints(first), nearest_ints(second));
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(ordered));
}

// sum + the dot products of quads of unsigned and signed bytes. VPMADDUBSW adds pairs in 16 bits, which saturate beyond
// 128.5 * 255: kMaxPairSum bounds what the signed bytes of a pair add up to. Widening both sides to 16 bits would
// allow any operands at 1.5 times the time.
inline constexpr int kMaxPairSum = 128;
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints a, Ints b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}

// Non-temporal store of a whole vector of elements; `to` is aligned to it.
template <size_t bytes>
[[gnu::always_inline]] inline void stream_bytes(void* to, const void* aligned) {
  if constexpr (bytes == sizeof(__m256i))
    _mm256_stream_si256(static_cast<__m256i*>(to), _mm256_load_si256(static_cast<const __m256i*>(aligned)));
  else
    _mm_stream_si128(static_cast<__m128i*>(to), _mm_load_si128(static_cast<const __m128i*>(aligned)));
}
[[gnu::always_inline]] inline void fence() { _mm_sfence(); }

// Makes the compiler compute `value` here, without combining it with others.
[[gnu::always_inline]] inline void keep(Floats& value) { asm("" : "+v"(value)); }

}  // namespace dtrain::cpu::DT_ISA
