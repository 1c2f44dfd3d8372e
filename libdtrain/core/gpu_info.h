// What can be known of the GPUs of this machine, and of the libraries for them, without a context.
#pragma once

#include <string>

#include "libdtrain/core/types.h"

namespace dtrain {

struct GpuInfo {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory = 0, free_memory = 0;  // bytes
  double bandwidth = 0;                // of its memory by clock and width, bytes per second; 0: not known
};
// Throws Error where cuda_device_count() is not above `device`.
GpuInfo gpu_info(int device);

// As the libraries number them: 13000 is CUDA 13.0, 91200 is cuDNN 9.12. All 0 in a build without a CUDA arm.
struct GpuVersions {
  int driver = 0;  // the newest CUDA that the driver serves; 0: no driver
  int runtime = 0;
  int cudnn_built = 0, cudnn_loaded = 0;
};
GpuVersions gpu_versions();

// The most operations per second, a multiply-add being two, that a GPU of this name is sold with, in products of dense
// matrices of `dtype` (`tf32`: of f32 rounded to it); 0: not known.
double peak_flops(const std::string& gpu, DType dtype, bool tf32);

}  // namespace dtrain
