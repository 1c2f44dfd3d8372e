// Device and pinned memory of the CUDA runtime, uncached.
#include "libdtrain/cuda/device_memory.h"

#include <algorithm>

#include "libdtrain/cuda/cuda.h"

namespace dtrain::cuda {
namespace {

// Scope whose allocations neither break a stream capture of another thread or this one nor become part of it. Sets the
// device first: a new thread's current device is 0, where the first other call would create a context.
class UncapturedCalls {
 public:
  explicit UncapturedCalls(int device) : status_(cudaSetDevice(device)) {
    if (status_ == cudaSuccess) status_ = cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~UncapturedCalls() {
    if (status_ == cudaSuccess) static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  UncapturedCalls(const UncapturedCalls&) = delete;
  UncapturedCalls& operator=(const UncapturedCalls&) = delete;
  cudaError_t status() const { return status_; }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  cudaError_t status_;
};

// Uncached memory from `allocate` and `free`; CachingAllocator goes on top.
class RawAllocator : public Allocator {
 public:
  using Allocate = cudaError_t (*)(void**, size_t);
  using Free = cudaError_t (*)(void*);
  RawAllocator(const char* what, int device, Allocate take, Free give)
      : what_(what), device_(device), allocate_(take), free_(give) {}

  void* allocate(size_t bytes) override {
    const UncapturedCalls uncaptured(device_);
    check(uncaptured.status(), "cudaSetDevice");
    void* block = nullptr;
    if (allocate_(&block, bytes) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // clears the error, else the next launch would report it
      size_t free = 0, total = 0;
      DT_CUDA(cudaMemGetInfo(&free, &total));
      throw Error(Fault::resource, concat("out of ", what_, ": ", bytes >> 20, " MiB requested, ", free >> 20,
                                          " MiB of ", total >> 20, " MiB free on the device"));
    }
    const std::lock_guard lock(mutex_);
    stats_.in_use += bytes;
    stats_.reserved += bytes;
    stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
    ++stats_.system_calls;
    return block;
  }
  void release(void* block, size_t bytes) noexcept override {
    {
      const UncapturedCalls uncaptured(device_);
      static_cast<void>(free_(block));
    }
    const std::lock_guard lock(mutex_);
    stats_.in_use -= bytes;
    stats_.reserved -= bytes;
  }
  MemoryStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  const char* what_;
  int device_;
  Allocate allocate_;
  Free free_;
  mutable std::mutex mutex_;
  MemoryStats stats_;
};

}  // namespace

std::unique_ptr<Allocator> make_device_memory(int device) {
  return std::make_unique<RawAllocator>(
      "device memory", device, [](void** block, size_t bytes) { return cudaMalloc(block, bytes); },
      [](void* block) { return cudaFree(block); });
}

std::unique_ptr<Allocator> make_pinned_memory(int device) {
  return std::make_unique<RawAllocator>(
      "pinned host memory", device, [](void** block, size_t bytes) { return cudaMallocHost(block, bytes); },
      [](void* block) { return cudaFreeHost(block); });
}

}  // namespace dtrain::cuda
