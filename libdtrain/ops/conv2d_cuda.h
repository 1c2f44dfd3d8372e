// What the CUDA arm of convolution does beside the library's part: kernels that conv2d_cuda.cpp and matmul_cuda.cpp
// call.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain::cuda {

// y[.., k] += bias[k]; y of any floating type, bias f32.
void add_bias(Context& context, const Tensor& bias, const Tensor& y);

// to[.., c] = from[.., c], or += it: a gradient into its f32 place from where the library left it, of any floating
// type. `from` may have more channels (the last extent) than `to`: the rest is dropped.
void store_gradient(Context& context, const Tensor& from, const Tensor& to, bool add);

}  // namespace dtrain::cuda
