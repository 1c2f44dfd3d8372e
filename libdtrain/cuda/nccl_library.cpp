#include "libdtrain/cuda/nccl_library.h"

#include "dtrain/core/error.h"

namespace dtrain::cuda {

const Nccl& nccl() {
  static const Nccl loaded{{concat("NCCL ", NCCL_MAJOR), concat("libnccl.so.", NCCL_MAJOR)}};
  return loaded;
}

}  // namespace dtrain::cuda
