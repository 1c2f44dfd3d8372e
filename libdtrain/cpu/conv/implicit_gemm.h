// Convolution as implicit GEMM with the engine's own micro-kernels: the im2col matrix by an indirection buffer, times
// packed weights. T is float, or Bf16 with Capabilities::bf16. One group.
#pragma once

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/gemm.h"

namespace dtrain::cpu {

// Packs weights w [k, r, s, c], each pixel's channels rounded up to pairs for bf16: packed_weight_elements elements.
template <class T>
void pack_weights(Context&, const ConvShape&, const T* w, T* packed);
template <class T>
int64_t packed_weight_elements(const Context& context, const ConvShape& o) {
  return packed_elements(context, o.k, o.r * o.s * round_up_to_pack<T>(o.c));
}

// y [n, p, q, k] = epilogue(x * w) for packed weights. Where `statistics` is given, y is added up there and k fills
// panels. `use_amx`: by tile registers, T being Bf16. A large y is written past the caches if it `may_bypass_caches`.
template <class T>
void implicit_gemm(Context&, const ConvShape&, const T* x, const T* packed_w, const Epilogue<T>&, T* y, bool use_amx,
                   FusedStatistics* statistics = nullptr, bool may_bypass_caches = true);

// dx from dy and w [k, r, s, c], stored or added: for each phase of the strides (see dgrad_phases.h) an implicit GEMM
// over dy. c fills panels, and k is even for bf16.
template <class T>
void implicit_gemm_dgrad(Context&, const ConvShape&, const T* dy, const T* w, T* dx, bool add, bool use_amx);

}  // namespace dtrain::cpu
