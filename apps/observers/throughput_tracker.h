// AWS Mask R-CNN's ThroughputTracker: throughput lines and scalars.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "dtrain/run/observer.h"

namespace dtrain::observers {

struct ThroughputOptions {
  double images = 1;    // global batch size
  uint64_t period = 1;  // steps per epoch
  uint64_t every = 0;   // steps between lines within an epoch; 0: none
  std::function<void(const std::string&)> line{};
  std::function<void(uint64_t step, const std::vector<MetricValue>&)> put{};  // scalars named Throughput/...
};

// Step counts restart with each epoch. The wall clock of an epoch excludes pauses after its last step, such as
// evaluations; the overhead is wall time minus the sum of step times. An epoch begun by an earlier process counts from
// where it was resumed.
class ThroughputTracker final : public Observer {
 public:
  explicit ThroughputTracker(ThroughputOptions options) : options_(std::move(options)) {}

  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;

 private:
  using Clock = std::chrono::steady_clock;
  void tell_of_steps(uint64_t step);
  void tell_of_epoch(uint64_t step);

  const ThroughputOptions options_;
  std::vector<double> seconds_;  // sum of this epoch's step times
  bool under_way_ = false;       // an epoch is
  Clock::time_point began_;      // it did
};

}  // namespace dtrain::observers
