// The variant of gemm_tn that reads A and B where they lie.
#pragma once

#include "libdtrain/cpu/gemm/gemm_tn.h"

namespace dtrain::cpu {

// Rows in a block: the panels of a micro-kernel that takes several stay in the first-level cache.
inline constexpr int64_t kUnpackedDepth = 96;

// Whether A is contiguous, its columns fill micro-kernels of several panels, and C stays in the second-level cache.
// Packing then costs more than it gains: up to half as much again at 56x56 pixels, 64 to 256 channels.
bool needs_no_packing(const Context&, const GemmTnShape&);

// C = or += B^T * A.
void gemm_tn_unpacked(Context&, const MatrixA<float>& a, const MatrixB<float>& b, float* c, bool add);

}  // namespace dtrain::cpu
