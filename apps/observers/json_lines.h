// The metrics file: a JSON line per shown step, evaluation and checkpoint.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/observers/step_statistics.h"

namespace dtrain::observers {

struct JsonLinesOptions {
  std::string path;
  SpeedOptions speed{};
  bool sums = false;               // gradients are summed over ranks
  bool gpu = false;                // the device's time between steps is known
  bool loss_scale = false;         // fp16
  uint64_t total_steps = 0;        // of the run, for the time that is left; 0: it is not told
  double flops = 0;                // that a step of this rank takes; 0: it is not written
  std::function<double()> peak{};  // operations per second that its device can do, 0 if not known
};

// {"step":20,"loss":2.3,...} for a step; {"step":20,"eval_top_1_accuracy":0.7,...} for an evaluation, whose values all
// begin with eval_; {"step":20,"checkpoint_bytes":...,"checkpoint_seconds":...} for a checkpoint. Where the file cannot
// be written one notice says so, and the run goes on without it.
class JsonLines final : public Observer {
 public:
  JsonLines(JsonLinesOptions options, std::function<void(const std::string&)> notice)
      : options_(std::move(options)), notice_(std::move(notice)), statistics_(options_.speed) {}

  // What the file holds of later steps is cut off. Throws Error for a path that cannot be a metrics file.
  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;

 private:
  // What had been counted when a step was last shown.
  struct Shown {
    uint64_t step = 0;
    double wait = 0, elapsed = 0;
    StepTimes times{};
    StepStatistics::Sums sums{};
  };
  MetricsFile::Fields fields_of(const Stepped& event);
  void add_performance(MetricsFile::Fields& fields) const;
  void remember();
  void append(uint64_t step, const MetricsFile::Fields& fields);

  const JsonLinesOptions options_;
  const std::function<void(const std::string&)> notice_;
  StepStatistics statistics_;
  std::optional<MetricsFile> file_;
  Shown shown_;
  double peak_ = 0;
};

}  // namespace dtrain::observers
