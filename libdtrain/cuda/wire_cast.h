// Numbers on their way to other GPUs: f32 to 16 bits and back, on whatever stream they travel on.
#pragma once

#include "libdtrain/core/tensor.h"
#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// `wire` = `x`, f32, rounded to the nearest bf16 or f16, ties to even; and `x` = `wire`. Equal counts.
void round_to_wire(const Context& context, cudaStream_t stream, const Tensor& x, const Tensor& wire);
void copy_from_wire(const Context& context, cudaStream_t stream, const Tensor& wire, const Tensor& x);

}  // namespace dtrain::cuda
