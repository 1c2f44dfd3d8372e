// CUDA Context: device memory under the caching allocator, asynchronous work on the compute stream.
#include "libdtrain/cuda/runtime.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "libdtrain/cuda/conditional_node.h"
#include "libdtrain/cuda/device_memory.h"
#include "libdtrain/cuda/profiler_range.h"
#include "libdtrain/cuda/step_graph.h"
#include "libdtrain/cuda/step_inputs.h"

namespace dtrain {
namespace cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Fault::resource, concat(call, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status)));
}

CudaStream make_stream(bool urgent) {
  int usual = 0, most = 0;
  DT_CUDA(cudaDeviceGetStreamPriorityRange(&usual, &most));
  cudaStream_t stream = nullptr;
  DT_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? most : usual));
  return CudaStream(stream);
}

CudaEvent make_event(bool timed) {
  cudaEvent_t event = nullptr;
  // Blocking sync: the waiting thread sleeps and leaves its core to the input pipeline.
  DT_CUDA(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | (timed ? 0u : cudaEventDisableTiming)));
  return CudaEvent(event);
}

Runtime::Runtime(const CudaOptions& options) : options_(options) {
  DT_CUDA(cudaSetDevice(options.device));
  DT_CUDA(cudaGetDeviceProperties(&properties_, options.device));
  compute_ = make_stream();
  copy_ = make_stream();
  communication_ = make_stream(/*urgent=*/true);  // peers wait for its data, and it uses few blocks
  body_ = make_stream();
}

Runtime::~Runtime() = default;

namespace {

// Default limit of the pool: leaves memory to the libraries and the driver.
size_t default_cap() {
  constexpr size_t kReserve = size_t{1} << 30;
  size_t free = 0, total = 0;
  DT_CUDA(cudaMemGetInfo(&free, &total));
  return free > 2 * kReserve ? free - kReserve : free / 2;
}

// All work is ordered on the compute stream, so memory released by the host is reusable at once: kernels that read it
// were enqueued before those that overwrite it.
class CudaContext final : public Context {
 public:
  CudaContext(const CudaOptions& options, std::shared_ptr<Runtime> runtime)
      : Context({DeviceKind::cuda, options.device},
                std::make_shared<CachingAllocator>(
                    make_device_memory(options.device), options.memory_cap ? options.memory_cap : default_cap(),
                    options.pool ? CachingAllocator::Spare::give_back : CachingAllocator::Spare::none)),
        host_(std::make_shared<CachingAllocator>(make_pinned_memory(options.device))) {
    runtime_ = std::move(runtime);
    constexpr int64_t kInputs = sizeof(StepInputs), kAll = sizeof(StepScalars);
    static_assert(kAll == kInputs + sizeof(StepState), "each part is copied on its own");
    scalars_tensor_ = empty({kAll}, DType::u8);
    state_tensor_ = scalars_tensor_.slice(kInputs, kAll);
    scalars_ = static_cast<StepScalars*>(scalars_tensor_.raw());
    CudaContext::set_scalars({});
    CudaContext::set_step_state({});
  }
  ~CudaContext() override { static_cast<void>(cudaStreamSynchronize(runtime_->compute())); }

  std::shared_ptr<Allocator> host_allocator() override { return host_; }
  void fill_zero(const Tensor& x) override {
    require(x, "fill_zero");
    if (x.bytes() > 0) DT_CUDA(cudaMemsetAsync(x.raw(), 0, x.bytes(), runtime_->compute()));
  }
  void copy(const Tensor& from, const Tensor& to) override {
    require(from, "copy");
    require(to, "copy");
    DT_CHECK(from.bytes() == to.bytes(), "copy: ", from.bytes(), " bytes into ", to.bytes());
    if (to.bytes() > 0)
      DT_CUDA(cudaMemcpyAsync(to.raw(), from.raw(), to.bytes(), cudaMemcpyDeviceToDevice, runtime_->compute()));
  }
  void upload(const void* from, const Tensor& to, Stream stream) override {
    refuse_while_capturing("upload");
    require(to, from, "upload");
    if (to.bytes() > 0) DT_CUDA(cudaMemcpyAsync(to.raw(), from, to.bytes(), cudaMemcpyHostToDevice, handle(stream)));
  }
  void download(const Tensor& from, void* to, const char* what) override {
    refuse_while_capturing(what);
    require(from, to, what);
    if (from.bytes() > 0)
      DT_CUDA(cudaMemcpyAsync(to, from.raw(), from.bytes(), cudaMemcpyDeviceToHost, runtime_->compute()));
    DT_CUDA(cudaStreamSynchronize(runtime_->compute()));
  }
  void synchronize(const char* what) override {
    refuse_while_capturing(what);
    DT_CUDA(cudaStreamSynchronize(runtime_->compute()));
  }
  Event download_later(const Tensor& from, void* to) override {
    refuse_while_capturing("download_later");
    require(from, to, "download_later");
    if (from.bytes() > 0)
      DT_CUDA(cudaMemcpyAsync(to, from.raw(), from.bytes(), cudaMemcpyDeviceToHost, runtime_->compute()));
    return record(Stream::compute);
  }

  Event record(Stream stream) override {
    std::shared_ptr<CUevent_st> event = make_event(/*timed=*/true);
    DT_CUDA(cudaEventRecord(event.get(), handle(stream)));
    return {std::move(event), {}};
  }
  Event stamp() override {
    if (!capturing_) return record(Stream::compute);
    DT_CHECK(!runtime_->in_body(), "stamp: not allowed in a conditional node");
    stamps_.push_back(make_event(/*timed=*/true));
    DT_CUDA(cudaEventRecordWithFlags(stamps_.back().get(), runtime_->compute(), cudaEventRecordExternal));
    return {};
  }
  void wait(const Event& event) override {
    refuse_while_capturing("wait");
    if (event.device) DT_CUDA(cudaEventSynchronize(handle(event)));
  }
  void wait(Stream stream, const Event& event) override {
    if (event.device) DT_CUDA(cudaStreamWaitEvent(handle(stream), handle(event), 0));
  }
  bool is_past(const Event& event) override {
    if (!event.device) return true;
    const cudaError_t status = cudaEventQuery(handle(event));
    if (status == cudaErrorNotReady) return false;
    check(status, "cudaEventQuery");
    return true;
  }
  double seconds_between(const Event& from, const Event& to) override {
    float milliseconds = 0;
    DT_CUDA(cudaEventElapsedTime(&milliseconds, handle(from), handle(to)));
    return static_cast<double>(milliseconds) / 1e3;
  }
  void name_work(const char* name) override {
    Context::name_work(name);
    ranges_.next(name);
  }

  MemoryStats memory_stats() const override;
  std::shared_ptr<StepGraph> capture(const std::function<void()>& work) override;
  void run_or_skip(const Tensor& count, float above, const std::function<void()>& work) override {
    const bool conditional = capturing_ && !runtime_->in_body() && has_conditional_nodes();
    Context::run_or_skip(count, above, [&] {
      if (!conditional) return work();
      capture_if_above(*this, count.data<float>(), above, work);
    });
  }
  std::vector<Event> launch(StepGraph& graph) override {
    refuse_while_capturing("launch");
    return graph.launch(runtime_->compute());
  }

  void set_scalars(const StepInputs& values) override {
    refuse_while_capturing("set_scalars");
    store_inputs(*this, values, scalars_);
  }
  void set_step_state(const StepState& values) override { upload(&values, state_tensor_, Stream::compute); }
  StepScalars get_scalars() override {
    StepScalars values;
    download(scalars_tensor_, &values, "get_scalars");
    return values;
  }

 private:
  static cudaEvent_t handle(const Event& event) { return static_cast<cudaEvent_t>(event.device.get()); }
  cudaStream_t handle(Stream stream) const {
    switch (stream) {
      case Stream::copy:
        return runtime_->copy();
      case Stream::communication:
        return runtime_->communication();
      case Stream::compute:
        break;
    }
    return runtime_->compute();
  }

  std::shared_ptr<Allocator> host_;
  std::weak_ptr<CachingAllocator> graph_memory_;  // shared by the live graphs
  std::vector<CudaEvent> stamps_;                 // of the capture in progress
  ProfilerRange ranges_;
  Tensor scalars_tensor_, state_tensor_;
};

// A graph reserves all memory that it needs, also while it is not running.
MemoryStats CudaContext::memory_stats() const {
  MemoryStats sum = memory_->stats();
  const auto graphs = graph_memory_.lock();
  if (!graphs || graphs == memory_) return sum;
  const MemoryStats stats = graphs->stats();
  sum.reserved += stats.reserved;
  sum.peak_in_use = std::max(sum.peak_in_use, sum.in_use + stats.peak_in_use);
  sum.in_use += stats.reserved;
  sum.system_calls += stats.system_calls;
  return sum;
}

// Graphs run one after the other on one stream and share a pool, since none reads temporaries of another. Tensors still
// held after a capture are not reused by the next.
std::shared_ptr<StepGraph> CudaContext::capture(const std::function<void()>& work) {
  refuse_while_capturing("capture");
  trim();
  auto memory = graph_memory_.lock();
  if (!memory)
    memory = std::make_shared<CachingAllocator>(make_device_memory(device_.index), 0, CachingAllocator::Spare::keep);
  const MemoryStats stats = memory_->stats();
  memory->set_limit(stats.limit - stats.reserved);
  Capture capture(runtime_->compute());
  capturing_ = true;
  stamps_.clear();
  memory_.swap(memory);
  const auto restore = [&] {
    memory_.swap(memory);
    capturing_ = false;
  };
  try {
    work();
  } catch (...) {
    restore();
    throw;
  }
  restore();
  graph_memory_ = memory;
  return std::make_shared<StepGraph>(capture.end(), std::exchange(stamps_, {}), std::move(memory));
}

}  // namespace
}  // namespace cuda

namespace {

// CUDA reports a missing driver as one that is too old.
std::string why_no_device(cudaError_t status) {
  if (status == cudaSuccess) return "the driver reports no device";
  int driver = 0;
  if (status == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "no NVIDIA driver is installed";
  return cudaGetErrorString(status);
}

}  // namespace

int cuda_device_count(std::string* reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (reason) *reason = why_no_device(status);
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
