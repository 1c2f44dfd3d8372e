// AVX512_BF16: dot products of bf16 pairs, and rounding to bf16.
#pragma once

#include "libdtrain/cpu/kernels/isa/avx512.h"

namespace dtrain::cpu::DT_ISA {

using Pairs = VectorOf<kLanes>::Bits;

[[gnu::always_inline]] inline Pairs broadcast_pair(const void* from) {
  Pairs pairs = load_unaligned<uint32_t>(from) + Pairs{};
#ifdef __clang__
  keep(pairs);  // Clang 16 never ends where it may make this a broadcast of bf16
#endif
  return pairs;
}
// VDPBF16PS: sum + the dot products of pairs, in float, the second elements first. Subnormal operands and results are
// zero.
[[gnu::always_inline]] inline Floats dot_pairs(Floats sum, Pairs a, Pairs b) {
  return reinterpret_cast<Floats>(
      _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
}

// Preferred to the template of vector.h. Subnormals become zero.
[[gnu::always_inline]] inline VectorOf<16>::Halves round_to_bf16(Floats value) {
  return reinterpret_cast<VectorOf<16>::Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(value)));
}
// Stores two vectors as bf16, in one conversion.
template <bool kNonTemporal>
[[gnu::always_inline]] inline void store_both(Bf16* to, Floats first, Floats second) {
  const auto rounded =
      reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first)));
  kNonTemporal ? _mm512_stream_si512(reinterpret_cast<__m512i*>(to), rounded) : _mm512_storeu_si512(to, rounded);
}

// The pairs (first[i], second[i]) of two vectors of bf16: those of the first and of the second half of the elements.
class PairInterleaver {
 public:
  PairInterleaver() {
    constexpr uint16_t kFirst = 0,
                       kSecond = 2 * kLanes;  // among the elements of both vectors
    uint16_t low[2 * kLanes], high[2 * kLanes];
    for (uint16_t i = 0; i < kLanes; ++i) {
      low[2 * i] = kFirst + i, low[2 * i + 1] = kSecond + i;
      high[2 * i] = kFirst + kLanes + i, high[2 * i + 1] = kSecond + kLanes + i;
    }
    low_ = _mm512_loadu_si512(low), high_ = _mm512_loadu_si512(high);
  }
  // 32 elements each.
  [[gnu::always_inline]] void operator()(const Bf16* first, const Bf16* second, void* to) const {
    const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, low_, b));
    _mm512_storeu_si512(static_cast<char*>(to) + sizeof(__m512i), _mm512_permutex2var_epi16(a, high_, b));
  }

 private:
  __m512i low_, high_;
};

}  // namespace dtrain::cpu::DT_ISA
