#include "dtrain/core/cuda_stream.h"

#ifdef DTRAIN_WITH_CUDA
#include "libdtrain/cuda/runtime.h"
#endif

namespace dtrain {

CUstream_st* cuda_stream(const Context& context) {
#ifdef DTRAIN_WITH_CUDA
  if (!context.is_cpu()) return context.runtime().compute();
#endif
  throw Error(concat("cuda_stream: asked of ", context.device(), ", expected the context of a GPU"));
}

}  // namespace dtrain
