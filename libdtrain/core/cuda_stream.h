// The stream that a GPU's ops are queued on: for ops outside of this library.
#pragma once

#include "libdtrain/core/context.h"

struct CUstream_st;  // CUDA's own: a CUstream_st* is a cudaStream_t

namespace dtrain {

// The compute queue of a CUDA context, as long as the context lives. A kernel that is launched on it runs after all ops
// before it and before all after it, memory that a Tensor has given back is not used by others before it is done, and
// it is recorded where a step is. So an op launches there, and waits for nothing. Throws Error on a CPU.
CUstream_st* cuda_stream(const Context& context);

}  // namespace dtrain
