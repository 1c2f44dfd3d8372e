// Context: one device, its memory, its streams and its library handles. Made in main, passed by reference.
// Longer than usual: all that a device does is one interface.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/core/checked_ref.h"
#include "dtrain/core/context_options.h"
#include "dtrain/core/event.h"
#include "dtrain/core/step_scalars.h"
#include "dtrain/core/tensor.h"

namespace dtrain {

class Profiler;
class RecordingThread;
namespace cpu {
class PrimitiveCache;
struct Kernels;
}  // namespace cpu
namespace cuda {
class Runtime;
class StepGraph;
}  // namespace cuda

// Objects constructed with a Context& must be destroyed before it. Stores, tapes, optimizers, trainers and feeds throw
// Error if they are used after its destruction. Tensors and events may outlive it: they keep its memory pool alive.
//
// Thread safety: on a CPU several threads may infer at once, by tapes in Mode::eval over an allocated ParameterStore
// that does not change, and by ops without a tape. All other use, and all use of a GPU context, is by one thread at a
// time; a Tape throws Error where it detects a second one.
class Context {
 public:
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device device() const { return device_; }
  bool is_cpu() const { return device_.kind == DeviceKind::cpu; }

  // Throws Error where `x` is undefined or on another device; `what` names the operation in the message.
  void require(const Tensor& x, const char* what) const {
    if (!x || x.device() != device_) [[unlikely]]
      refuse(x, what);
  }
  // As above; also throws Error if `host`, the host memory of a copy to or from `x`, is null.
  void require(const Tensor& x, const void* host, const char* what) const;

  // Contents undefined. The memory returns to this context's pool with the last reference.
  Tensor empty(Shape shape, DType dtype = DType::f32) const {
    return Tensor(std::make_shared<Storage>(memory_, static_cast<size_t>(shape.count()) * size_of(dtype)), 0, shape,
                  dtype, device_);
  }
  Tensor zeros(Shape shape, DType dtype = DType::f32);
  virtual MemoryStats memory_stats() const { return memory_->stats(); }
  // Waits for the device and returns the pool's unused memory to it.
  void trim() {
    synchronize("trim");
    memory_->trim();
  }

  // Asynchronous on a GPU: enqueued on the compute stream unless another is named.
  virtual void fill_zero(const Tensor& x) = 0;
  virtual void copy(const Tensor& from, const Tensor& to) = 0;  // within the device; same bytes
  // `from` may be changed on return, but memory of host_allocator() only after an event past the copy.
  virtual void upload(const void* from, const Tensor& to, Stream stream = Stream::compute) = 0;
  // Asynchronous copy to memory of host_allocator(); complete once the returned event is past.
  virtual Event download_later(const Tensor& from, void* to) = 0;

  virtual Event record(Stream stream = Stream::compute) = 0;
  // Records an event for timing. In a captured step every launch of the graph gets a new one, see launch().
  virtual Event stamp() { return record(); }
  virtual void wait(const Event& event) = 0;                 // the caller waits
  virtual void wait(Stream stream, const Event& event) = 0;  // work enqueued from now on waits
  virtual bool is_past(const Event& event) = 0;
  virtual double seconds_between(const Event& from, const Event& to) = 0;  // both past
  // Names the work enqueued from now on, for the device's profiling tools and profiler(); null: no name.
  virtual void name_work(const char* name);

  // Profiler; null: none.
  Profiler* profiler() const { return profiler_; }
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }

  // Waits for the device; refused while a step is being captured. `what` names the caller in the message.
  virtual void download(const Tensor& from, void* to, const char* what) = 0;
  virtual void synchronize(const char* what) = 0;

  bool capturing() const { return capturing_; }  // of a CUDA graph: nothing may wait for the device
  // Captures the work that `work` enqueues as a CUDA graph, without running it. Temporaries come from a memory pool for
  // graphs alone, so that addresses stay valid; the next launch of any graph overwrites them, except for tensors that
  // are still held. What `work` throws ends the capture and is passed on. Throws on a CPU.
  virtual std::shared_ptr<cuda::StepGraph> capture(const std::function<void()>& work);
  // Runs `work`. A captured step executes it as a conditional node, skipped where count [1] f32, on the device, is not
  // above `above`: skipping it must not change any result that is read. `work` uses the compute stream alone. Without
  // CUDA 12.4 or later it is never skipped.
  virtual void run_or_skip(const Tensor& count, float above, const std::function<void()>& work);
  // Launches a captured graph. Returns the events of its stamp() calls, in order; each stays valid while it is held.
  virtual std::vector<Event> launch(cuda::StepGraph& graph);
  [[deprecated("renamed: launch")]] std::vector<Event> replay(cuda::StepGraph& graph) { return launch(graph); }

  // Compute threads of a CPU context, whatever thread calls; 1 elsewhere.
  int threads() const { return threads_; }
  RecordingThread& recording_thread() { return *recording_thread_; }  // see Tape
  // Warnings to print, e.g. an unusable plan file.
  std::vector<std::string>& notices() { return notices_; }

  std::weak_ptr<const void> lifetime() const { return lifetime_.watch(); }  // for a CheckedRef

  StepScalars* scalars() const { return scalars_; }  // device address of the step scalars
  virtual void set_scalars(const StepInputs& values) = 0;
  virtual void set_step_state(const StepState& values) = 0;
  virtual StepScalars get_scalars() = 0;  // waits for the device

  // Allocates host memory that the device copies from and to at full speed: pinned for a GPU.
  virtual std::shared_ptr<Allocator> host_allocator() = 0;

  // CPU only: instruction set, dispatch table of the kernels, cache of oneDNN's primitives.
  CpuIsa isa() const;
  const cpu::Kernels& kernels() const;
  cpu::PrimitiveCache& primitives() const;
  const std::string& conv_algorithm() const { return conv_algorithm_; }  // see CpuOptions; empty on a GPU
  cuda::Runtime& runtime() const;                                        // CUDA only: streams and library handles

 protected:
  Context(Device device, std::shared_ptr<CachingAllocator> memory);
  [[noreturn]] void refuse(const Tensor& x, const char* what) const;
  void refuse_while_capturing(const char* what) const {
    DT_CHECK(!capturing_, what, ": waits for the device, which is not allowed while a step is captured");
  }

  Device device_;
  std::shared_ptr<CachingAllocator> memory_;
  CpuIsa isa_ = CpuIsa::avx2;
  const cpu::Kernels* kernels_ = nullptr;
  std::shared_ptr<cpu::PrimitiveCache> primitives_;
  std::string conv_algorithm_;
  std::shared_ptr<cuda::Runtime> runtime_;
  StepScalars* scalars_ = nullptr;
  Profiler* profiler_ = nullptr;
  std::vector<std::string> notices_;
  bool capturing_ = false;
  int threads_ = 1;
  std::shared_ptr<RecordingThread> recording_thread_;
  Lifetime lifetime_;
};

// Throws Error(Fault::config) on a processor without the instructions that this build or `options.isa` needs.
std::unique_ptr<Context> make_cpu_context(CpuOptions options = {});

// GPUs that this build and this machine's driver can use; 0 also where `reason`, if given, says why.
int cuda_device_count(std::string* reason = nullptr);
// Throws Error(Fault::config) where there is no such device, with the reason.
std::unique_ptr<Context> make_cuda_context(const CudaOptions& options = {});

}  // namespace dtrain
