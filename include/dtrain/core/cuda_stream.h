// CUDA stream of a GPU context, for custom ops outside of this library.
#pragma once

#include "dtrain/core/context.h"

struct CUstream_st;  // CUDA's own: a CUstream_st* is a cudaStream_t

namespace dtrain {

// Compute stream of a CUDA context, valid as long as the context. Kernels launched on it run in order with the engine's
// ops, memory of a released Tensor is not reused before they finish, and they become part of a captured step. A custom
// op launches here and never synchronises. Throws Error on a CPU.
CUstream_st* cuda_stream(const Context& context);

}  // namespace dtrain
