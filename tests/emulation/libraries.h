// Stand-ins of CUDA's libraries: CPU kernels in f32, enqueued like library calls.
#pragma once

#include <functional>

#include "dtrain/core/context.h"

namespace dtrain::cuda {

// f32 copy of a device tensor; undefined if it is null.
Tensor read(Context& cpu, const void* from, Shape shape, DType dtype);
void write(const Tensor& from, void* to, DType dtype);
// Injects a fault: fused convolutions omit the first row of their results.
void spoil_fused_convolutions(bool spoil);
// Enqueues work(cpu) on the compute stream.
void queue(const Context& context, const std::function<void(Context&)>& work);

}  // namespace dtrain::cuda
