// The gradient of a convolution's filters as one matrix product over the pixels of the output, for any stride.
#pragma once

#include <vector>

#include "libdtrain/core/float16.h"
#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// Whether the kernel takes the shape: channels and filters in whole panels, one group.
bool gemm_wgrad_supports(const Context&, const ConvShape& shape);
// Whether it takes the shape and is faster there than oneDNN: enough products per pixel to pay for the packing. Images
// of bf16 need a processor that has products of them.
bool gemm_wgrad_pays(const Context&, const ConvShape& shape, DType images);
// Whether there are enough products per pixel to pay for the packing.
bool enough_products(const ConvShape& shape);
// dw from x and dy, float or Bf16, stored or added; `chosen`: of these pixels of dy alone, where the others are zero.
template <class T>
void gemm_wgrad(Context&, const ConvShape&, const T* x, const T* dy, float* dw, bool add,
                const std::vector<int64_t>* chosen = nullptr);

}  // namespace dtrain::cpu
