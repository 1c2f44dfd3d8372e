// Conversion between f32 and the 16-bit wire types of all-reduce, on any stream.
#pragma once

#include "dtrain/core/tensor.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// round_to_wire: `wire` = `x` (f32) rounded to nearest even in bf16 or f16. copy_from_wire: the inverse. Equal counts.
void round_to_wire(const Context& context, cudaStream_t stream, const Tensor& x, const Tensor& wire);
void copy_from_wire(const Context& context, cudaStream_t stream, const Tensor& wire, const Tensor& x);

}  // namespace dtrain::cuda
