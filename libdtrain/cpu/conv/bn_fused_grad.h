// Both gradients of a 1x1 convolution, fused with the backward pass of the batch norm after it: dy is made block by
// block and consumed from the cache, so that it never goes through memory. T is float or Bf16.
#pragma once

#include <functional>

#include "libdtrain/cpu/conv/conv_shape.h"

namespace dtrain::cpu {

// Null where the fusion pays, else why it does not. It saves one pass that writes dy and two that read it; in return
// the weights and the sums of dw go through the second-level cache with each block.
const char* bn_fused_grads_declined(const Context&, const ConvShape&, DType);

// How dy is made.
template <class T>
struct BlockwiseGradient {
  const T *dz, *x;                                              // [pixels, k] that `make` reads: they are prefetched
  std::function<void(int64_t begin, int64_t end, T* dy)> make;  // of pixels [begin, end), on any thread
};

// dw and dx from x and dy, stored or added, with the bits of gemm_tn and implicit_gemm_dgrad.
template <class T>
void bn_fused_grads(Context&, const ConvShape&, const T* x, const T* w, const BlockwiseGradient<T>& dy, float* dw,
                    bool add_dw, T* dx, bool add_dx);

}  // namespace dtrain::cpu
