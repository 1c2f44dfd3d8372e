// What can be known of the GPUs of this machine, and of the libraries for them, without a context.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/core/types.h"

namespace dtrain {

struct GpuInfo {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory = 0, free_memory = 0;  // bytes
  double bandwidth = 0;                // memory bandwidth by clock and width, bytes per second; 0: not known
  std::string address{};               // on the PCI bus of its host: "0000:17:00"
};
// Throws Error where cuda_device_count() is not above `device`.
GpuInfo gpu_info(int device);

// A library for GPUs. It is loaded when it is first needed, so it may be another one than was built against, or none.
struct GpuLibrary {
  std::string name;
  int built = 0, loaded = 0;  // as it numbers its versions: 91200 is 9.12.0; 0: not loaded, or any is as good
  std::string file{};         // that it was loaded from
  std::string problem{};      // why it cannot be loaded; empty where it is
};

// As CUDA numbers its versions: 13000 is 13.0. Nothing in a build without a CUDA arm.
struct GpuVersions {
  int driver = 0;  // the newest CUDA that the driver serves; 0: no driver
  int runtime = 0;
  std::vector<GpuLibrary> libraries{};
};
// Loads the libraries.
GpuVersions gpu_versions();

// The most operations per second, a multiply-add being two, that a GPU of this name is sold with, in products of dense
// matrices of `dtype` (`tf32`: f32 rounded to it); 0: not known.
double peak_flops(const std::string& gpu, DType dtype, bool tf32);

}  // namespace dtrain
