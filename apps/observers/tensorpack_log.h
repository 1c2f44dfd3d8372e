// Log in TensorPack's format, for its log parsers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/log.h"
#include "apps/observers/epoch_means.h"

namespace dtrain::observers {

struct TensorPackLogOptions {
  double images = 1;    // global batch size
  uint64_t period = 1;  // steps per epoch
  uint64_t steps = 1;   // of the run
  bool ends_with_evaluation = false;
  ScalarTags tags{};
};

// "[1130 14:03:07 @monitor.py:467] text": `source` is the line of TensorPack's code that prints such a text.
std::string tensorpack_line(std::string_view source, std::string_view text);

// Start and end of each epoch with its scalars by name, a progress bar at displayed steps, checkpoints, and
// evaluations.
class TensorPackLog final : public Observer {
 public:
  // `log` outlives this.
  TensorPackLog(cli::Log& log, TensorPackLogOptions options) : log_(log), options_(std::move(options)) {}

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }
  void ended(const Ended& event) override;

 private:
  using Clock = std::chrono::steady_clock;
  void line(std::string_view source, const std::string& text) { log_.line(tensorpack_line(source, text)); }
  void scalars(std::vector<MetricValue> values);
  void start_epoch();
  void progress(uint64_t step);
  void end_epoch(uint64_t step);

  cli::Log& log_;
  const TensorPackLogOptions options_;
  EpochMeans means_;
  uint64_t done_ = 0;          // steps
  bool under_way_ = false;     // an epoch is
  std::string last_line_{};    // printed after the last evaluation
  Clock::time_point began_{};  // it did; without pauses before its first step, such as evaluations
};

}  // namespace dtrain::observers
