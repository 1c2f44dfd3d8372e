// Metrics of displayed steps, for metrics files and live displays.
#pragma once

#include <functional>

#include "apps/observers/step_statistics.h"

namespace dtrain::observers {

struct FigureOptions {
  SpeedOptions speed{};
  bool sums = false;               // gradients are all-reduced
  bool gpu = false;                // the device's time between steps is known
  bool loss_scale = false;         // fp16
  uint64_t total_steps = 0;        // total steps, for the remaining time; 0: no estimate
  double flops = 0;                // of this rank's step; 0: not reported
  std::function<double()> peak{};  // peak FLOP/s of its device; 0: unknown
};

// Means are over the steps since the last displayed one, or since timing began.
class StepFigures {
 public:
  explicit StepFigures(FigureOptions options) : options_(std::move(options)), statistics_(options_.speed) {}

  void begun(const Begun& event);
  void stepping();
  // Values of a displayed step by name, such as loss and data_wait_ms; empty for other steps and in the warm-up.
  MetricsFile::Fields stepped(const Stepped& event);

  const FigureOptions& options() const { return options_; }
  const StepStatistics& statistics() const { return statistics_; }

 private:
  // Counters at the last displayed step.
  struct Shown {
    uint64_t step = 0;
    double wait = 0, elapsed = 0;
    StepTimes times{};
    StepStatistics::Sums sums{};
  };
  MetricsFile::Fields fields_of(const Stepped& event) const;
  void add_times(MetricsFile::Fields& fields) const;
  void add_performance(MetricsFile::Fields& fields) const;
  void add_sums(MetricsFile::Fields& fields) const;
  void remember();

  const FigureOptions options_;
  StepStatistics statistics_;
  Shown shown_;
  double peak_ = 0;
};

}  // namespace dtrain::observers
