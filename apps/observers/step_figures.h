// The figures of shown steps, as metrics files and live displays have them.
#pragma once

#include <functional>

#include "apps/observers/step_statistics.h"

namespace dtrain::observers {

struct FigureOptions {
  SpeedOptions speed{};
  bool sums = false;               // gradients are summed over ranks
  bool gpu = false;                // the device's time between steps is known
  bool loss_scale = false;         // fp16
  uint64_t total_steps = 0;        // of the run, for the time that is left; 0: it is not told
  double flops = 0;                // that a step of this rank takes; 0: it is not told
  std::function<double()> peak{};  // operations per second that its device can do, 0 if not known
};

// Means are of the steps since the last shown one, or since timing began.
class StepFigures {
 public:
  explicit StepFigures(FigureOptions options) : options_(std::move(options)), statistics_(options_.speed) {}

  void begun(const Begun& event);
  void stepping();
  // Those of a shown step by their names in metrics files, such as loss and data_wait_ms; none where the step is not
  // shown or belongs to the warm-up.
  MetricsFile::Fields stepped(const Stepped& event);

  const FigureOptions& options() const { return options_; }
  const StepStatistics& statistics() const { return statistics_; }

 private:
  // What had been counted when a step was last shown.
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
