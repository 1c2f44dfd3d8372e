// Traces, profiles and timelines of a run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "apps/cli/options/tracing.h"
#include "apps/observers/roofline.h"
#include "libdtrain/core/profiler.h"
#include "libdtrain/io/trace_file.h"
#include "libdtrain/run/observer.h"

namespace dtrain::observers {

struct TracingOptions {
  // Of a trace of one step, a profile of the first timed ones, and a timeline of all; empty: none.
  std::string trace_file{}, profile_file{}, roofline_file{}, timeline{};
  bool chrome_format = true;        // of the trace; else text
  DType compute_type = DType::f32;  // of convolutions and products, whose peak a GPU is held against
  uint64_t warmup_steps = 0, total_steps = 0;
  std::string process{};                           // as the traces call it
  std::function<void(const std::string&)> line{};  // for the log
  std::function<void(const std::string&)> notice{};
};

// What the flags say; `log` is used as long as the observer.
TracingOptions tracing_options(const cli::TracingFlags& flags, DType compute_type, cli::Log& log);

// The trace is of tf_cnn_benchmarks' step, the second-to-last of the warm-up, or where a run has no such step, of its
// second one or its only one, with a notice. Where a file cannot be written a notice says so, and the run goes on
// without it; only a timeline has to be there when the run begins.
class Tracing final : public Observer {
 public:
  // Throws as TraceFile does for the timeline. `context` outlives this.
  Tracing(TracingOptions options, Context& context);

  ~Tracing() override;  // ends the timeline

  // From now on sums of `communicator` are shown; it may outlive this.
  void listen_to(Communicator& communicator) const;
  // Shows a span in the trace where it is of the traced step. Any thread may call it, and after the end of this.
  std::function<void(const TraceSpan&)> span_listener() const;

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void ended(const Ended&) override;

 private:
  // What other threads tell.
  struct Heard;
  bool profiles(uint64_t step) const { return first_profiled_ <= step && step <= last_profiled_; }
  void measure_roofs();
  void end_step();
  void write_trace(std::vector<WorkRecord> records);
  void write_profile();
  void attempt(const std::function<void()>& write) const;
  void show(const std::string& lane, const std::string& name, double seconds);

  const TracingOptions options_;
  Context& context_;
  Profiler profiler_;
  std::optional<Roofs> roofs_;  // measured for the roofline
  std::shared_ptr<Heard> heard_;
  uint64_t traced_ = 0, first_profiled_ = 1, last_profiled_ = 0;  // numbers of steps
  uint64_t step_ = 0;                                             // under observation
  std::vector<WorkRecord> profiled_;
};

}  // namespace dtrain::observers
