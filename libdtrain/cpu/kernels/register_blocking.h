// Register blocking of the GEMM micro-kernels: a block of rows by panels of two vectors of columns. The accumulators,
// the vectors of B and one of A fit the registers.
#pragma once

#include "libdtrain/cpu/kernels/isa/isa.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kColumns = 2 * kLanes;  // of a packed panel of B
inline constexpr int kRows = kRegisters == 32 ? 12 : 6;
// Panels that an indirect GEMM takes at a time, at most. Half as many rows by two panels need fewer loads for as many
// sums, where registers hold four vectors of B.
inline constexpr int kPanels = kLanes == 16 ? 2 : 1;

// Accumulators of R rows by P panels, of Floats or Ints.
template <class V, int R, int P>
using Sums = V[R][2 * P];

}  // namespace dtrain::cpu::DT_ISA
