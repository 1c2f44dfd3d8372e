// Profiler: time, FLOPs and bytes of a step's ops and kernels.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "dtrain/core/event.h"
#include "dtrain/core/tensor.h"

namespace dtrain {

class Context;

using SteadyTimePoint = std::chrono::steady_clock::time_point;

// Nesting of records: step > phase > op > kernel. Kernels outside of ops, e.g. of the update, belong to their phase.
enum class WorkLevel { step, phase, op, kernel };

struct WorkRecord {
  WorkLevel level = WorkLevel::op;
  int depth = 0;                          // nesting depth
  std::string name{};                     // of the op (as in Tape::record), the kernel or the phase
  std::string phase{};                    // "input", "forward", "backward", "reduce", "update"; empty: none
  std::vector<std::string> parameters{};  // names of parameters that an op reads
  std::vector<Shape> inputs{};            // inputs of an op
  Shape output{};
  SteadyTimePoint begin{};
  double seconds = 0;
  double flops = 0, bytes = 0;  // lower bounds for an op; 0: unknown

  // Common path of its parameters, e.g. "layer1.0.conv1"; empty if there is none.
  std::string layer() const;
};

// Attached to a context from begin_step() to end_step(), it records all work of the calling thread on it; other threads
// are not recorded. Detached, it costs a null check per op. Results do not change. On a GPU it times with events in the
// compute stream, accurate to a few microseconds, and CUDA graphs are not used while it is attached.
class Profiler {
 public:
  // `context` must outlive it.
  explicit Profiler(Context& context) : context_(context) {}
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Begins a step in phase "input". Waits for the device. Throws Error if another profiler is attached.
  void begin_step(const std::string& name);
  void end_step();
  bool attached() const { return attached_; }
  // Records since the last call, parents before children. Waits for the device. Requires end_step().
  std::vector<WorkRecord> take();

  // Called by the code under observation.

  // Begins another phase; null: none.
  void phase(const char* name);
  // Marks the earliest possible start of the next op.
  void between_ops();
  // Declares that a tensor at this address is a parameter.
  void name_parameter(const Tensor& compute, const std::string& name);
  // Operands of an op; undefined tensors are skipped.
  struct Op {
    const char* name;
    std::span<const Tensor> inputs;
    const Tensor& output;
    double flops;
  };
  // Ends a forward op, which owns the kernels since between_ops(). Returns its number for begin_backward().
  int64_t end_forward(const Op& op);
  // Begins the backward of op `number`; -1: one that was not recorded. `gradients`: number of its large inputs that
  // need a gradient, each of which costs as many FLOPs as the op itself.
  void begin_backward(const char* op, int64_t number, int gradients);
  void begin_kernel(const char* name);
  // Ends the innermost open record.
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
  std::vector<size_t> open_;  // indices of unfinished records
  std::string phase_;
  size_t unclaimed_ = 0;  // first record of the current op
  Event between_;         // earliest possible start of the current op
  Event origin_;          // device time at host_origin_
  SteadyTimePoint host_origin_{};
  std::unordered_map<const void*, std::string> parameters_;
};

// Scope of a record; `profiler` may be null.
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
