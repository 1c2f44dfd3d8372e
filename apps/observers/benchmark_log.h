// Benchmark log of TensorFlow's model garden: benchmark_run.log and metric.log, as written by BenchmarkFileLogger of
// official/r1/utils/logs/logger.py for tf_cnn_benchmarks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "apps/cli/line_file.h"
#include "apps/observers/step_statistics.h"

namespace dtrain::observers {

// A run parameter; the alternative determines the log's member.
using RunParameter = std::variant<bool, int64_t, double, std::string>;

struct BenchmarkLogOptions {
  std::string folder{};  // created if missing
  std::string model{}, dataset{}, test_id{}, version{};
  std::map<std::string, RunParameter> parameters{};
  int gpus = 0, gpu = 0;  // of this run; device of this process
  SpeedOptions speed{};
  double global_batch = 1;
};

// Overwrites benchmark_run.log with one line of JSON about the run. Appends a line per metric to metric.log: name,
// value, unit, global_step, timestamp, extras. Metrics: current_examples_per_sec and accuracies of displayed steps,
// counted from the end of the warm-up; average_examples_per_sec of the run; eval_... of evaluations. If a file cannot
// be written, prints one notice and continues without the log.
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
