// Status checks and owned handles of the CUDA runtime.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "dtrain/core/error.h"

namespace dtrain::cuda {

// Throws Error(Fault::resource), naming the call, unless `status` is success.
void check(cudaError_t status, const char* call);

// Deleter that calls `destroy`; ignores its status, since destructors do not throw.
template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const noexcept {
    static_cast<void>(destroy(handle));
  }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

using CudaStream = Owned<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

// `urgent`: highest stream priority.
CudaStream make_stream(bool urgent = false);
CudaEvent make_event(bool timed = false);

}  // namespace dtrain::cuda

// DT_CUDA(call): throws Error if a CUDA runtime call fails.
#define DT_CUDA(...) ::dtrain::cuda::check((__VA_ARGS__), #__VA_ARGS__)
