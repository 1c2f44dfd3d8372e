#include "libdtrain/cuda/cudnn_library.h"

#include "libdtrain/core/error.h"
#include "libdtrain/cuda/cublas_library.h"

namespace dtrain::cuda {

const Cudnn& cudnn() {
  static const Cudnn loaded = [] {
    // Engines of cuDNN load cuBLASLt by its bare name: where it is loaded already, it need not lie where they look.
    cublas_lt();
    return Cudnn{{concat("cuDNN ", CUDNN_MAJOR), concat("libcudnn.so.", CUDNN_MAJOR)}};
  }();
  return loaded;
}

}  // namespace dtrain::cuda
