// The CUDA Context: device memory under the caching pool, asynchronous copies on the compute stream.
#include "libdtrain/cuda/runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace dtrain {
namespace cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Fault::resource, concat(call, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status)));
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  DT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

Event make_event(bool timed) {
  cudaEvent_t event = nullptr;
  DT_CUDA(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  return Event(event);
}

Runtime::Runtime(const CudaOptions& options) : options_(options) {
  DT_CUDA(cudaSetDevice(options.device));
  DT_CUDA(cudaGetDeviceProperties(&properties_, options.device));
  compute_ = make_stream();
  copy_ = make_stream();
  communication_ = make_stream();
  const char* sync = std::getenv("DTRAIN_SYNC");
  sync_each_launch_ = sync != nullptr && std::strcmp(sync, "1") == 0;
}

Runtime::~Runtime() = default;

namespace {

// A capture that other threads' allocations must not break, nor our own: they are no part of the graph.
class UncapturedCalls {
 public:
  UncapturedCalls() { DT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~UncapturedCalls() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  UncapturedCalls(const UncapturedCalls&) = delete;
  UncapturedCalls& operator=(const UncapturedCalls&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Memory from `allocate` and for `free`, whole and without a cache; CachingAllocator goes on top.
class RawAllocator : public Allocator {
 public:
  using Allocate = cudaError_t (*)(void**, size_t);
  using Free = cudaError_t (*)(void*);
  RawAllocator(const char* what, Allocate take, Free give) : what_(what), allocate_(take), free_(give) {}

  void* allocate(size_t bytes) override {
    const UncapturedCalls uncaptured;
    void* block = nullptr;
    if (allocate_(&block, bytes) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // it would show up at the next launch
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
    static_cast<void>(free_(block));
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
  Allocate allocate_;
  Free free_;
  mutable std::mutex mutex_;
  MemoryStats stats_;
};

std::unique_ptr<Allocator> device_memory() {
  return std::make_unique<RawAllocator>(
      "device memory", [](void** block, size_t bytes) { return cudaMalloc(block, bytes); },
      [](void* block) { return cudaFree(block); });
}

std::unique_ptr<Allocator> pinned_memory() {
  return std::make_unique<RawAllocator>(
      "pinned host memory", [](void** block, size_t bytes) { return cudaMallocHost(block, bytes); },
      [](void* block) { return cudaFreeHost(block); });
}

// What the pool may take: the libraries and the driver need some of their own.
size_t default_cap() {
  constexpr size_t kReserve = size_t{1} << 30;
  size_t free = 0, total = 0;
  DT_CUDA(cudaMemGetInfo(&free, &total));
  return free > 2 * kReserve ? free - kReserve : free / 2;
}

// Work of one device is queued in order on its compute stream, so that memory released by the host may be handed out
// again at once: what reads it was queued before what overwrites it.
class CudaContext final : public Context {
 public:
  CudaContext(const CudaOptions& options, std::shared_ptr<Runtime> runtime)
      : Context({DeviceKind::cuda, options.device},
                std::make_shared<CachingAllocator>(device_memory(),
                                                   options.memory_cap ? options.memory_cap : default_cap())),
        host_(std::make_shared<CachingAllocator>(pinned_memory())) {
    runtime_ = std::move(runtime);
    scalars_tensor_ = empty({static_cast<int64_t>(sizeof(StepScalars))}, DType::u8);
    scalars_ = static_cast<StepScalars*>(scalars_tensor_.raw());
    CudaContext::set_scalars({});
  }
  ~CudaContext() override { static_cast<void>(cudaStreamSynchronize(runtime_->compute())); }

  std::shared_ptr<Allocator> host_allocator() override { return host_; }
  void fill_zero(const Tensor& x) override {
    if (x.bytes() > 0) DT_CUDA(cudaMemsetAsync(x.raw(), 0, x.bytes(), runtime_->compute()));
  }
  void copy(const Tensor& from, const Tensor& to) override {
    DT_CHECK(from.bytes() == to.bytes(), "copy: ", from.bytes(), " bytes into ", to.bytes());
    if (to.bytes() > 0)
      DT_CUDA(cudaMemcpyAsync(to.raw(), from.raw(), to.bytes(), cudaMemcpyDeviceToDevice, runtime_->compute()));
  }
  void upload(const void* from, const Tensor& to) override {
    refuse_while_capturing("upload");
    if (to.bytes() > 0)
      DT_CUDA(cudaMemcpyAsync(to.raw(), from, to.bytes(), cudaMemcpyHostToDevice, runtime_->compute()));
  }
  void download(const Tensor& from, void* to, const char* what) override {
    refuse_while_capturing(what);
    if (from.bytes() > 0)
      DT_CUDA(cudaMemcpyAsync(to, from.raw(), from.bytes(), cudaMemcpyDeviceToHost, runtime_->compute()));
    DT_CUDA(cudaStreamSynchronize(runtime_->compute()));
  }
  void synchronize(const char* what) override {
    refuse_while_capturing(what);
    DT_CUDA(cudaStreamSynchronize(runtime_->compute()));
  }
  void set_scalars(const StepScalars& values) override { upload(&values, scalars_tensor_); }
  StepScalars get_scalars() override {
    StepScalars values;
    download(scalars_tensor_, &values, "get_scalars");
    return values;
  }

 private:
  std::shared_ptr<Allocator> host_;
  Tensor scalars_tensor_;
};

}  // namespace
}  // namespace cuda

int cuda_device_count(std::string* reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (reason) *reason = status == cudaSuccess ? "the driver shows no device" : cudaGetErrorString(status);
  return 0;
}

std::unique_ptr<Context> make_cuda_context(const CudaOptions& options) {
  std::string reason;
  const int count = cuda_device_count(&reason);
  DT_CHECK(count > 0, "no GPU: ", reason);
  DT_CHECK(0 <= options.device && options.device < count, "no GPU ", options.device, ": this machine has ", count,
           ", numbered from 0");
  return std::make_unique<cuda::CudaContext>(options, std::make_shared<cuda::Runtime>(options));
}

}  // namespace dtrain
