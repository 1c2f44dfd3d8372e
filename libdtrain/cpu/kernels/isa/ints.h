// Vectors of whole numbers of 32 bits, as many as of floats, and what goes between them, floats and bytes.
#pragma once

#include "libdtrain/cpu/kernels/isa/vectors.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr float kMostByte = 255;

#ifdef __AVX512F__
using Ints = __m512i;
// GCC 12 warns about the forms without a mask, which leave a result undefined before they set it.
inline constexpr __mmask16 kAll = 0xffff;
[[gnu::always_inline]] inline Ints load_ints(const void* from) { return _mm512_loadu_si512(from); }
[[gnu::always_inline]] inline Ints all_of(int32_t x) { return _mm512_set1_epi32(x); }
[[gnu::always_inline]] inline Floats floats_of(Ints x) { return _mm512_maskz_cvtepi32_ps(kAll, x); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Floats bytes_as_floats(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepu8_epi32(kAll, bytes));
}
// At most kMostByte: a number beyond 32 bits would become the least one, as a NaN does.
[[gnu::always_inline]] inline Ints nearest_ints(Floats value) {
  return _mm512_maskz_cvtps_epi32(kAll, _mm512_maskz_min_ps(kAll, _mm512_set1_ps(kMostByte), value));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  const __m512i whole = _mm512_maskz_max_epi32(kAll, nearest_ints(value), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtusepi32_epi8(kAll, whole));
}
// The bytes of two vectors, one after the other: packed together they take half as long.
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats first, Floats second) {
  constexpr __mmask32 kWords = 0xffffffff;
  constexpr __mmask64 kBytes = ~__mmask64{0};
  const __m512i words = _mm512_maskz_packs_epi32(kWords, nearest_ints(first), nearest_ints(second));
  const __m512i bytes = _mm512_maskz_packus_epi16(kBytes, words, words);
  // Each 128 bits hold a quarter of either vector, twice.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i ordered = _mm512_maskz_permutexvar_epi32(kAll, order, bytes);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), __builtin_shufflevector(ordered, ordered, 0, 1, 2, 3));
}
#else
using Ints = __m256i;
[[gnu::always_inline]] inline Ints load_ints(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline Ints all_of(int32_t x) { return _mm256_set1_epi32(x); }
[[gnu::always_inline]] inline Floats floats_of(Ints x) { return _mm256_cvtepi32_ps(x); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Floats bytes_as_floats(const uint8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
[[gnu::always_inline]] inline Ints nearest_ints(Floats value) {
  return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(kMostByte), value));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  const __m256i whole = nearest_ints(value);
  const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(half, half));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats first, Floats second) {
  const __m256i words = _mm256_packs_epi32(nearest_ints(first), nearest_ints(second));
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(ordered));
}
#endif

}  // namespace dtrain::cpu::DT_ISA
