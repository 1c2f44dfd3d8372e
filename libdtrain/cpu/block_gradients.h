// Both gradients of a 1x1 convolution whose dy is made as it is needed, a block of pixels at a time, and is read from
// the cache: it is never in memory.
#pragma once

#include <functional>

#include "libdtrain/core/float16.h"
#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// Whether this pays where dy has still to be made. A pass that writes dy and two that read it are spared; in return the
// filters and their sums pass through the second-level cache with each block.
bool block_gradients_pay(const Context&, const ConvShape&, DType);

// Pixels of dy.
template <class T>
struct BlockSource {
  const T *first, *second;                                      // [pixels, k], what they are made of: read ahead
  std::function<void(int64_t begin, int64_t end, T* dy)> make;  // by any thread
};

// dw and dx from x and dy, stored or added; the same bits as gemm_wgrad and gathered_dgrad.
template <class T>
void block_gradients(Context&, const ConvShape&, const T* x, const T* w, const BlockSource<T>& dy, float* dw,
                     bool add_dw, T* dx, bool add_dx);

}  // namespace dtrain::cpu
