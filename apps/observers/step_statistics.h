// Step statistics for logs and metrics files: throughput by tf_cnn_benchmarks' definitions, and sums over the timed
// steps.
#pragma once

#include <chrono>
#include <optional>

#include "dtrain/run/observer.h"
#include "dtrain/train/metrics.h"

namespace dtrain::observers {

struct SpeedOptions {
  double samples_per_step = 1;   // images that the throughput refers to
  std::optional<double> ewma{};  // EWMA weight of the newest step; none: mean
  uint64_t warmup_steps = 0;     // neither timed nor displayed
};

// A step's time includes waiting for data; the total time includes checkpoints and evaluations.
class StepStatistics {
 public:
  // All-reduce statistics over the steps with timing, and the time of those steps.
  struct Sums {
    CommunicatorTimes times{};
    double step_seconds = 0;
    uint64_t steps = 0;
  };

  explicit StepStatistics(const SpeedOptions& options)
      : warmup_(options.warmup_steps), speed_(options.samples_per_step, options.ewma) {}

  void begun(uint64_t step);
  // Both return true if the warm-up has ended and timing starts with the next step.
  bool stepping();
  bool stepped(const Stepped& event);

  bool timing() const { return timing_; }
  uint64_t step() const { return step_; }
  const Throughput& speed() const { return speed_; }
  const StepTimes& times() const { return times_; }  // sums over the timed steps
  const Sums& sums() const { return sums_; }
  double bytes() const { return bytes_; }                    // minimum memory traffic of a step
  double wait_seconds() const { return wait_; }              // waiting for data since the start of the run
  double timed_wait() const { return wait_ - timed_wait_; }  // since timing began
  double elapsed() const;                                    // since timing began, in seconds
  // Estimated remaining time until step `end`, from the mean of the timed steps; 0 if none was timed.
  double seconds_until(uint64_t end) const;

 private:
  using Clock = std::chrono::steady_clock;
  bool begin_timing();
  void add_sums(const Stepped& event);

  uint64_t warmup_;
  Throughput speed_;
  uint64_t first_ = 1, step_ = 0;
  bool timing_ = false, idle_ = true;  // idle: no step is under way
  Clock::time_point timing_began_;
  StepTimes times_{};
  Sums sums_;
  double bytes_ = 0, wait_ = 0, timed_wait_ = 0;
};

}  // namespace dtrain::observers
