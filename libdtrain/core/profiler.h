// Profiler: what a step does, op by op, and how long each takes.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "libdtrain/core/event.h"
#include "libdtrain/core/tensor.h"

namespace dtrain {

class Context;

using SteadyTimePoint = std::chrono::steady_clock::time_point;

// What holds what: a step has phases, these have ops, and ops have kernels. A kernel that belongs to no op, as those of
// an update, is held by its phase.
enum class WorkLevel { step, phase, op, kernel };

struct WorkRecord {
  WorkLevel level = WorkLevel::op;
  int depth = 0;                          // how many others hold it
  std::string name{};                     // of the op, as Tape::record has it, of the kernel, or of the phase
  std::string phase{};                    // "input", "forward", "backward", "reduce", "update"; empty: none
  std::vector<std::string> parameters{};  // names of those that an op is seen to read
  std::vector<Shape> inputs{};            // of an op, those that it was given
  Shape output{};
  SteadyTimePoint begin{};
  double seconds = 0;
  double flops = 0, bytes = 0;  // that an op takes at least; 0: not known

  // The path that its parameters have in common with their layer, e.g. "layer1.0.conv1"; empty where it has none.
  std::string layer() const;
};

// Attached to a context from begin_step() to end_step(), it observes all work that the calling thread does there
// meanwhile; other threads are not observed. Without one, an op costs a look at a null pointer more. It changes no
// result. On a GPU it times by events in the compute queue, which are less exact than a CPU's clock by a few
// microseconds, and steps are not replayed as a whole while it is attached.
class Profiler {
 public:
  // `context` outlives it.
  explicit Profiler(Context& context) : context_(context) {}
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // A step begins, in its phase "input". Waits for the device. Throws Error where another one is attached.
  void begin_step(const std::string& name);
  void end_step();
  bool attached() const { return attached_; }
  // What has been observed since the last call, each before those that it holds. Waits for the device. Only after
  // end_step().
  std::vector<WorkRecord> take();

  // Called by what is observed.

  // Another phase begins; null: none.
  void phase(const char* name);
  // No op under way has begun before this moment.
  void between_ops();
  // From now on a tensor at this place is a parameter.
  void name_parameter(const Tensor& compute, const std::string& name);
  // What an op was made of; undefined tensors are left out.
  struct Op {
    const char* name;
    std::span<const Tensor> inputs;
    const Tensor& output;
    double flops;
  };
  // An op has run forward, and with it the kernels since between_ops(). Returns its number for begin_backward.
  int64_t end_forward(const Op& op);
  // The gradient of op `number` begins; -1: of one that was not observed. `gradients`: how many of an op's large inputs
  // want one, each of which takes as many operations as the op itself.
  void begin_backward(const char* op, int64_t number, int gradients);
  void begin_kernel(const char* name);
  // What was begun last ends.
  void end();

 private:
  struct Entry {
    WorkRecord record;
    Event begin, end;
  };
  bool observes() const { return attached_ && std::this_thread::get_id() == thread_; }
  Event now() const;
  void open(WorkLevel level, const std::string& name);
  void close_to(size_t depth);

  Context& context_;
  bool attached_ = false;
  std::thread::id thread_;
  std::vector<Entry> entries_;
  std::vector<size_t> open_;  // numbers of entries that have not ended
  std::string phase_;
  size_t unclaimed_ = 0;  // the first entry of the op that is under way
  Event between_;         // when that can have begun at the earliest
  Event origin_;          // the device's time at host_origin_
  SteadyTimePoint host_origin_{};
  std::unordered_map<const void*, std::string> parameters_;
};

// Observes a part from its construction to its end; `profiler` may be null.
class KernelSpan {
 public:
  KernelSpan(Profiler* profiler, const char* name) : profiler_(profiler) {
    if (profiler_) [[unlikely]]
      profiler_->begin_kernel(name);
  }
  ~KernelSpan() {
    if (profiler_) [[unlikely]]
      profiler_->end();
  }
  KernelSpan(const KernelSpan&) = delete;
  KernelSpan& operator=(const KernelSpan&) = delete;

 private:
  Profiler* const profiler_;
};

}  // namespace dtrain
