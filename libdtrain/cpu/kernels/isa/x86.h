// Shared by AVX2 and AVX-512: non-temporal stores, and conversions of 8 elements.
#pragma once

#include <immintrin.h>

#include "libdtrain/cpu/kernels/isa/vector.h"

namespace dtrain::cpu::DT_ISA {

[[gnu::always_inline]] inline VectorOf<8>::Bits widen(VectorOf<8>::Halves halves) {
  return reinterpret_cast<VectorOf<8>::Bits>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
}

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

// Keeps the compiler from combining `value` with other computations.
template <class V>
[[gnu::always_inline]] inline void keep(V& value) {
  asm("" : "+v"(value));
}

}  // namespace dtrain::cpu::DT_ISA
