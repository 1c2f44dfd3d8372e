#include "libdtrain/cuda/nvjpeg_library.h"

#include "dtrain/core/error.h"

namespace dtrain::cuda {

const Nvjpeg& nvjpeg() {
  constexpr int kMajor = CUDART_VERSION / 1000;  // nvJPEG's major version follows CUDA's
  static const Nvjpeg loaded{{concat("nvJPEG ", kMajor), concat("libnvjpeg.so.", kMajor)}};
  return loaded;
}

}  // namespace dtrain::cuda
