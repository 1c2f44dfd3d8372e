// What stands in for CUDA's libraries: the CPU arm in single precision, queued as a library's call is.
#pragma once

#include <functional>

#include "libdtrain/core/context.h"

namespace dtrain::cuda {

// The f32 copy of a tensor of the device; undefined where there is none.
Tensor read(Context& cpu, const void* from, Shape shape, DType dtype);
void write(const Tensor& from, void* to, DType dtype);
// From now on convolutions that are fused with something leave out the first row of their results: a fault of a
// library.
void spoil_fused_convolutions(bool spoil);
// Queues work(cpu) on the compute stream.
void queue(const Context& context, const std::function<void(Context&)>& work);

}  // namespace dtrain::cuda
