#include "libdtrain/cuda/cublas_library.h"

#include "dtrain/core/error.h"

namespace dtrain::cuda {

const CublasLt& cublas_lt() {
  static const CublasLt loaded{{concat("cuBLAS ", CUBLAS_VER_MAJOR), concat("libcublasLt.so.", CUBLAS_VER_MAJOR)}};
  return loaded;
}

}  // namespace dtrain::cuda
