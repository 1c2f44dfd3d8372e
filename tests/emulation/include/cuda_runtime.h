// Emulated <cuda_runtime.h>: nvcc's built-ins, intrinsics, runtime and launches, for g++.
#pragma once

#include <functional>
#include <tuple>

#include "cuda_runtime_api.h"
#include "emulated/execution.h"
#include "emulated/intrinsics.h"
#include "emulated/math.h"

namespace emulation {
// Validates a launch as CUDA does and enqueues it; `thread`: body of each thread.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread);
}  // namespace emulation

// Device function.
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return emulation::launch(*config, reinterpret_cast<const void*>(kernel),
                           [kernel, values = std::tuple<Parameters...>(std::forward<Arguments>(arguments)...)] {
                             std::apply(kernel, values);
                           });
}

// CUDA's typed C++ overloads.
template <class T>
cudaError_t cudaMalloc(T** block, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(block), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T** block, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(block), bytes);
}
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(Parameters...), int threads,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(kernel), threads,
                                                       shared_bytes);
}
