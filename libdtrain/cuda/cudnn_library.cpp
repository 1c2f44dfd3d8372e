#include "libdtrain/cuda/cudnn_library.h"

#include "dtrain/core/error.h"
#include "libdtrain/cuda/cublas_library.h"

namespace dtrain::cuda {

const Cudnn& cudnn() {
  static const Cudnn loaded = [] {
    // cuDNN engines load cuBLASLt by its bare name: loading it first makes it found wherever it lies.
    cublas_lt();
    return Cudnn{{concat("cuDNN ", CUDNN_MAJOR), concat("libcudnn.so.", CUDNN_MAJOR)}};
  }();
  return loaded;
}

}  // namespace dtrain::cuda
