#include "libdtrain/cuda/library_versions.h"

#include "dtrain/core/error.h"
#include "libdtrain/cuda/cublas_library.h"
#include "libdtrain/cuda/cudnn_library.h"
#include "libdtrain/cuda/nvjpeg_library.h"
#ifdef DTRAIN_WITH_NCCL
#include "libdtrain/cuda/nccl_library.h"
#endif

namespace dtrain::cuda {
namespace {

template <class Functions>
GpuLibrary version_of(const char* name, int built, const Functions& (*load)()) {
  GpuLibrary known{name, built};
  try {
    const Functions& loaded = load();
    known.loaded = static_cast<int>(loaded.version());
    known.file = loaded.library.path();
  } catch (const Error& error) {
    known.problem = error.what();
  }
  return known;
}

}  // namespace

std::vector<GpuLibrary> library_versions() {
  return {
      version_of("cuBLASLt", CUBLAS_VERSION, cublas_lt),
      version_of("cuDNN", CUDNN_VERSION, cudnn),
      version_of("nvJPEG", 0, nvjpeg),
#ifdef DTRAIN_WITH_NCCL
      version_of("NCCL", NCCL_VERSION_CODE, nccl),
#endif
  };
}

}  // namespace dtrain::cuda
