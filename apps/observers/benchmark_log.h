// The benchmark log of TensorFlow's model garden: benchmark_run.log and metric.log in a folder, as the
// BenchmarkFileLogger of its official/r1/utils/logs/logger.py writes them for tf_cnn_benchmarks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "apps/cli/line_file.h"
#include "apps/observers/step_statistics.h"

namespace dtrain::observers {

// A parameter of a run, in the member of the log that has its type.
using RunParameter = std::variant<bool, int64_t, double, std::string>;

struct BenchmarkLogOptions {
  std::string folder{};  // made where it is not there
  std::string model{}, dataset{}, test_id{}, version{};
  std::map<std::string, RunParameter> parameters{};
  int gpus = 0, gpu = 0;  // of this run; which one this process has
  SpeedOptions speed{};
  double global_batch = 1;
};

// benchmark_run.log is one line of JSON about the run, in place of what was there; metric.log has one for each figure:
// name, value, unit, global_step, timestamp, extras. It is appended to: current_examples_per_sec and the accuracies of
// shown steps, counted from the end of the warm-up, average_examples_per_sec of the run, and eval_... of evaluations.
// Where a file cannot be written one notice says so, and the run goes on without the log.
class BenchmarkLog final : public Observer {
 public:
  BenchmarkLog(BenchmarkLogOptions options, std::function<void(const std::string&)> notice)
      : options_(std::move(options)), notice_(std::move(notice)), statistics_(options_.speed) {}

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void ended(const Ended& event) override;

 private:
  void attempt(const std::function<void()>& write);
  void write_run() const;
  void put(const std::string& name, double value, uint64_t step);

  const BenchmarkLogOptions options_;
  const std::function<void(const std::string&)> notice_;
  StepStatistics statistics_;
  std::optional<cli::LineFile> metrics_;
};

}  // namespace dtrain::observers
