// AVX512_VNNI: dot products of quads of bytes.
#pragma once

#include "libdtrain/cpu/kernels/isa/avx512.h"

namespace dtrain::cpu::DT_ISA {

// sum + the dot products of quads of unsigned and signed bytes; see avx2.h. Exact for all operands.
inline constexpr int kMaxPairSum = 254;
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints a, Ints b) { return _mm512_dpbusd_epi32(sum, a, b); }

}  // namespace dtrain::cpu::DT_ISA
