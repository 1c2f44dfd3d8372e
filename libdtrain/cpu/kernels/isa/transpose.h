// Blocks of words that are turned in registers.
#pragma once

#include <immintrin.h>

#include "libdtrain/cpu/kernels/isa/vectors.h"

namespace dtrain::cpu::DT_ISA {

// Transposes 8 x 8 words.
[[gnu::always_inline]] inline void transpose(__m256 (&v)[8]) {
  __m256 two[8], four[8];
  for (int i = 0; i < 8; i += 2) {
    two[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    two[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    four[i] = _mm256_shuffle_ps(two[i], two[i + 2], 0x44);
    four[i + 1] = _mm256_shuffle_ps(two[i], two[i + 2], 0xee);
    four[i + 2] = _mm256_shuffle_ps(two[i + 1], two[i + 3], 0x44);
    four[i + 3] = _mm256_shuffle_ps(two[i + 1], two[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
  }
}

}  // namespace dtrain::cpu::DT_ISA
