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
#include "dtrain/core/profiler.h"
#include "dtrain/run/observer.h"
#include "libdtrain/io/trace_file.h"

namespace dtrain::observers {

struct TracingOptions {
  // Files for the trace of one step, the profile of the first timed steps, and the timeline of all steps; empty: none.
  std::string trace_file{}, profile_file{}, roofline_file{}, timeline{};
  bool chrome_format = true;        // format of the trace; else text
  DType compute_type = DType::f32;  // of convolutions and GEMMs, for the GPU's peak
  uint64_t warmup_steps = 0, total_steps = 0;
  std::string process{};                           // name in traces
  std::function<void(const std::string&)> line{};  // for the log
  std::function<void(const std::string&)> notice{};
};

// Options from the flags; `log` outlives the observer.
TracingOptions tracing_options(const cli::TracingFlags& flags, DType compute_type, cli::Log& log);

// Traces the same step as tf_cnn_benchmarks, the second to last of the warm-up; if there is none, the second or the
// only step, with a notice. If a file cannot be written, prints a notice and continues without it; only the timeline
// must be writable at the start.
class Tracing final : public Observer {
 public:
  // Throws like TraceFile for the timeline. `context` outlives this.
  Tracing(TracingOptions options, Context& context);

  ~Tracing() override;  // ends the timeline

  // Traces the all-reduces of `communicator` from now on, which may outlive this.
  void listen_to(Communicator& communicator) const;
  // Adds a span if it belongs to the traced step. Thread-safe; may be called after the end of this object.
  std::function<void(const TraceSpan&)> span_listener() const;

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void ended(const Ended&) override;

 private:
  // Spans of other threads.
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
