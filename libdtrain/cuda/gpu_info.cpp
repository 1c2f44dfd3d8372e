#include "dtrain/core/gpu_info.h"

#include <fmt/format.h>

#include "dtrain/core/context.h"
#include "libdtrain/cuda/cuda.h"
#include "libdtrain/cuda/library_versions.h"

namespace dtrain {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  DT_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

GpuInfo gpu_info(int device) {
  std::string reason;
  DT_CHECK(device < cuda_device_count(&reason), "no GPU ", device, reason.empty() ? "" : ": ", reason);
  cudaDeviceProp properties{};
  DT_CUDA(cudaGetDeviceProperties(&properties, device));
  GpuInfo info{
      properties.name,
      properties.major,
      properties.minor,
      properties.multiProcessorCount,
      properties.totalGlobalMem,
      0,
      0,
      fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID)};
  DT_CUDA(cudaSetDevice(device));
  size_t total = 0;
  DT_CUDA(cudaMemGetInfo(&info.free_memory, &total));
  // Double data rate: two transfers of a bus width per clock.
  const double hertz = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);
  info.bandwidth = 2 * hertz * attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
  return info;
}

GpuVersions gpu_versions() {
  GpuVersions versions;
  if (cudaDriverGetVersion(&versions.driver) != cudaSuccess) versions.driver = 0;
  DT_CUDA(cudaRuntimeGetVersion(&versions.runtime));
  versions.libraries = cuda::library_versions();
  return versions;
}

}  // namespace dtrain
