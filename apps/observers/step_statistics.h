// What logs and metrics files show of the steps: speeds by tf_cnn_benchmarks' definitions, and sums over the timed
// steps.
#pragma once

#include <chrono>
#include <optional>

#include "libdtrain/run/observer.h"
#include "libdtrain/train/metrics.h"

namespace dtrain::observers {

struct SpeedOptions {
  double samples_per_step = 1;   // that the printed speeds are about
  std::optional<double> ewma{};  // the weight of the newest step in the speed; none: all weigh the same
  uint64_t warmup_steps = 0;     // neither timed nor shown
};

// A step's time includes the wait for its data; the time of all steps includes checkpoints and evaluations.
class StepStatistics {
 public:
  // Sums over the ranks, over the steps in which they were timed, and the time of those steps.
  struct Sums {
    CommunicatorTimes times{};
    double step_seconds = 0;
    uint64_t steps = 0;
  };

  explicit StepStatistics(const SpeedOptions& options)
      : warmup_(options.warmup_steps), speed_(options.samples_per_step, options.ewma) {}

  void begun(uint64_t step);
  // Both return true where the warm-up is over and timing begins with the next step.
  bool stepping();
  bool stepped(const Stepped& event);

  bool timing() const { return timing_; }
  uint64_t step() const { return step_; }
  const Throughput& speed() const { return speed_; }
  const StepTimes& times() const { return times_; }  // sums over the timed steps
  const Sums& sums() const { return sums_; }
  double bytes() const { return bytes_; }                    // that a step moves at least
  double wait_seconds() const { return wait_; }              // for data, since the run began
  double timed_wait() const { return wait_ - timed_wait_; }  // since timing began
  double elapsed() const;                                    // since timing began, in seconds
  // The time that is left until step `end` is done, by the mean of the timed steps; 0 where none has been timed.
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
