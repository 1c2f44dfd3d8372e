// Vectors of whole numbers of 32 bits, as many as of floats, and what goes between them, floats and bytes.
#pragma once

#include "libdtrain/cpu/kernels/vectors.h"

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
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  value = value > kMostByte ? kMostByte - Floats{} : value;  // what is beyond 32 bits would be converted to the least
  const __m512i whole = _mm512_maskz_max_epi32(kAll, _mm512_maskz_cvtps_epi32(kAll, value), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtusepi32_epi8(kAll, whole));
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
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  value = value > kMostByte ? kMostByte - Floats{} : value;
  const __m256i whole = _mm256_cvtps_epi32(value);
  const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(half, half));
}
#endif

}  // namespace dtrain::cpu::DT_ISA
