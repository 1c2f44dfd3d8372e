// AVX-512 (F, BW, DQ, VL): 32 registers of 16 floats. GCC 12 warns about intrinsics without a mask, which leave a
// result undefined before they set it; hence the forms with a mask of ones.
#pragma once

#include <immintrin.h>

#include "libdtrain/cpu/kernels/isa/vector.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kLanes = 16, kRegisters = 32;
inline constexpr __mmask16 kAll = 0xffff;
using Floats = VectorOf<kLanes>::Type;
using Ints = __m512i;

[[gnu::always_inline]] inline VectorOf<8>::Bits widen(VectorOf<8>::Halves halves) {
  return reinterpret_cast<VectorOf<8>::Bits>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
}
[[gnu::always_inline]] inline VectorOf<16>::Bits widen(VectorOf<16>::Halves halves) {
  return reinterpret_cast<VectorOf<16>::Bits>(_mm512_maskz_cvtepu16_epi32(kAll, reinterpret_cast<__m256i>(halves)));
}
[[gnu::always_inline]] inline VectorOf<kLanes>::Bits widen_bytes(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<VectorOf<kLanes>::Bits>(_mm512_maskz_cvtepu8_epi32(kAll, bytes));
}
[[gnu::always_inline]] inline Ints load_ints(const void* from) { return _mm512_loadu_si512(from); }
[[gnu::always_inline]] inline Ints broadcast(int32_t x) { return _mm512_set1_epi32(x); }
[[gnu::always_inline]] inline Floats to_floats(Ints x) { return _mm512_maskz_cvtepi32_ps(kAll, x); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Floats bytes_to_floats(const uint8_t* from) {
  return _mm512_maskz_cvtepi32_ps(kAll, reinterpret_cast<__m512i>(widen_bytes(from)));
}

// Rounds to nearest, ties to even. Clamped to kMaxByte first: beyond 32 bits the result would be the least integer, as
// for a NaN.
[[gnu::always_inline]] inline Ints nearest_ints(Floats value) {
  return _mm512_maskz_cvtps_epi32(kAll, _mm512_maskz_min_ps(kAll, _mm512_set1_ps(kMaxByte), value));
}
// Rounds and saturates to 0 ... 255; a NaN becomes 0.
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  const __m512i rounded = _mm512_maskz_max_epi32(kAll, nearest_ints(value), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtusepi32_epi8(kAll, rounded));
}
// Two vectors packed together take half the time of two calls.
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats first, Floats second) {
  constexpr __mmask32 kWords = 0xffffffff;
  constexpr __mmask64 kBytes = ~__mmask64{0};
  const __m512i words = _mm512_maskz_packs_epi32(kWords, nearest_ints(first), nearest_ints(second));
  const __m512i bytes = _mm512_maskz_packus_epi16(kBytes, words, words);
  // Each 128-bit lane holds a quarter of either vector, twice.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i ordered = _mm512_maskz_permutexvar_epi32(kAll, order, bytes);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), __builtin_shufflevector(ordered, ordered, 0, 1, 2, 3));
}

#ifndef __AVX512VNNI__
// As in avx2.h.
inline constexpr int kMaxPairSum = 128;
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints a, Ints b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
}
#endif

// Non-temporal store of a whole vector of elements; `to` is aligned to it.
template <size_t bytes>
[[gnu::always_inline]] inline void stream_bytes(void* to, const void* aligned) {
  if constexpr (bytes == sizeof(__m512i))
    _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_load_si512(aligned));
  else if constexpr (bytes == sizeof(__m256i))
    _mm256_stream_si256(static_cast<__m256i*>(to), _mm256_load_si256(static_cast<const __m256i*>(aligned)));
  else
    _mm_stream_si128(static_cast<__m128i*>(to), _mm_load_si128(static_cast<const __m128i*>(aligned)));
}
[[gnu::always_inline]] inline void fence() { _mm_sfence(); }

// Makes the compiler compute `value` here, without combining it with others.
[[gnu::always_inline]] inline void keep(Floats& value) { asm("" : "+v"(value)); }

// Transposes 16 x 16 words; rows are `from_stride` and `to_stride` words apart.
[[gnu::always_inline]] inline void transpose_16x16(const uint32_t* from, int64_t from_stride, uint32_t* to,
                                                   int64_t to_stride) {
  constexpr int kQuarter = 4;  // words of a 128-bit lane
  const auto load_quarter = [&](int64_t row, int64_t column) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + row * from_stride + column));
  };
#pragma GCC unroll 4
  for (int64_t column = 0; column < kLanes; column += kQuarter) {
    __m512i row[kQuarter];
#pragma GCC unroll 4
    for (int i = 0; i < kQuarter; ++i) {
      row[i] = _mm512_zextsi128_si512(load_quarter(i, column));
      row[i] = _mm512_inserti32x4(row[i], load_quarter(kQuarter + i, column), 1);
      row[i] = _mm512_inserti32x4(row[i], load_quarter(2 * kQuarter + i, column), 2);
      row[i] = _mm512_inserti32x4(row[i], load_quarter(3 * kQuarter + i, column), 3);
    }
    constexpr __mmask8 kAll8 = 0xff;
    const __m512i low01 = _mm512_maskz_unpacklo_epi32(kAll, row[0], row[1]),
                  high01 = _mm512_maskz_unpackhi_epi32(kAll, row[0], row[1]),
                  low23 = _mm512_maskz_unpacklo_epi32(kAll, row[2], row[3]),
                  high23 = _mm512_maskz_unpackhi_epi32(kAll, row[2], row[3]);
    uint32_t* const out = to + column * to_stride;
    _mm512_storeu_si512(out, _mm512_maskz_unpacklo_epi64(kAll8, low01, low23));
    _mm512_storeu_si512(out + to_stride, _mm512_maskz_unpackhi_epi64(kAll8, low01, low23));
    _mm512_storeu_si512(out + 2 * to_stride, _mm512_maskz_unpacklo_epi64(kAll8, high01, high23));
    _mm512_storeu_si512(out + 3 * to_stride, _mm512_maskz_unpackhi_epi64(kAll8, high01, high23));
  }
}

}  // namespace dtrain::cpu::DT_ISA
