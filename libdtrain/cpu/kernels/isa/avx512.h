// AVX-512 (F, BW, DQ, VL), with or without VNNI: 32 registers of 16 floats. GCC 12 warns about intrinsics without a
// mask, which leave a result undefined before they set it; hence the forms with a mask of ones.
#pragma once

#include "libdtrain/cpu/kernels/isa/x86.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kLanes = 16, kRegisters = 32;
inline constexpr __mmask16 kAll = 0xffff;
using Floats = VectorOf<kLanes>::Type;
using Ints = VectorOf<kLanes>::Ints;

[[gnu::always_inline]] inline VectorOf<16>::Bits widen(VectorOf<16>::Halves halves) {
  return reinterpret_cast<VectorOf<16>::Bits>(_mm512_maskz_cvtepu16_epi32(kAll, reinterpret_cast<__m256i>(halves)));
}
[[gnu::always_inline]] inline Ints widen_bytes(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Ints>(_mm512_maskz_cvtepu8_epi32(kAll, bytes));
}
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

// Rounds to nearest, ties to even. Clamped to kMaxByte first: beyond 32 bits the result would be the least integer, as
// for a NaN.
[[gnu::always_inline]] inline __m512i nearest_ints(Floats value) {
  return _mm512_maskz_cvtps_epi32(kAll, _mm512_maskz_min_ps(kAll, _mm512_set1_ps(kMaxByte), value));
}
// Rounds and saturates to 0 ... 255; a NaN becomes 0.
[[gnu::always_inline]] inline void store(uint8_t* to, Floats value) {
  const __m512i rounded = _mm512_maskz_max_epi32(kAll, nearest_ints(value), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtusepi32_epi8(kAll, rounded));
}
// Two vectors packed together take half the time of two calls.
template <bool>
[[gnu::always_inline]] inline void store_both(uint8_t* to, Floats first, Floats second) {
  constexpr __mmask32 kWords = 0xffffffff;
  constexpr __mmask64 kBytes = ~__mmask64{0};
  const __m512i words = _mm512_maskz_packs_epi32(kWords, nearest_ints(first), nearest_ints(second));
  const __m512i bytes = _mm512_maskz_packus_epi16(kBytes, words, words);
  // Each 128-bit lane holds a quarter of either vector, twice.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i ordered = _mm512_maskz_permutexvar_epi32(kAll, order, bytes);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), __builtin_shufflevector(ordered, ordered, 0, 1, 2, 3));
}

#ifdef __AVX512VNNI__
// VPDPBUSD: exact for all operands.
inline constexpr int kMaxPairSum = 254;
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
#else
// As in avx2.h.
inline constexpr int kMaxPairSum = 128;
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints a, Ints b) {
  const __m512i pairs = _mm512_maddubs_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
  return sum + reinterpret_cast<Ints>(_mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

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
