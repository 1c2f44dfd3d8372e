// GpuInfo: properties of GPUs and versions of their libraries, without a context.
#pragma once

#include <string>
#include <vector>

#include "dtrain/core/types.h"

namespace dtrain {

struct GpuInfo {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory = 0, free_memory = 0;  // bytes
  double bandwidth = 0;                // theoretical memory bandwidth, bytes per second; 0: unknown
  std::string address{};               // PCI address: "0000:17:00"
};
// Throws Error unless `device` < cuda_device_count().
GpuInfo gpu_info(int device);

// GPU library, loaded at first use: it may be another version than at build time, or missing.
struct GpuLibrary {
  std::string name;
  int built = 0, loaded = 0;  // in the library's own numbering: 91200 is 9.12.0; 0: not loaded, or any version fits
  std::string file{};         // path it was loaded from
  std::string problem{};      // why loading failed; empty: it did not
};

// In CUDA's numbering: 13000 is 13.0. Empty in builds without CUDA.
struct GpuVersions {
  int driver = 0;  // newest CUDA version that the driver supports; 0: no driver
  int runtime = 0;
  std::vector<GpuLibrary> libraries{};
};
// Loads the libraries.
GpuVersions gpu_versions();

// Peak dense matrix throughput of a GPU model in FLOP/s (2 per multiply-add) for `dtype` (`tf32`: f32 as TF32); 0:
// unknown.
double peak_flops(const std::string& gpu, DType dtype, bool tf32);

}  // namespace dtrain
