// AWS Mask R-CNN's ThroughputTracker: lines about speed, and the same as scalars.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "libdtrain/run/observer.h"

namespace dtrain::observers {

struct ThroughputOptions {
  double images = 1;    // of a step, over all ranks
  uint64_t period = 1;  // steps of an epoch
  uint64_t every = 0;   // steps between lines within an epoch; 0: none
  std::function<void(const std::string&)> line{};
  std::function<void(uint64_t step, const std::vector<MetricValue>&)> put{};  // scalars named Throughput/...
};

// Counts of steps begin anew with each epoch. The wall clock of an epoch stands still while training pauses after its
// last step, as for an evaluation; the overhead is what it has beyond the sum of the steps. An epoch that was begun by
// an earlier process counts from where this one continued it.
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
  std::vector<double> seconds_;  // of the steps of this epoch
  bool under_way_ = false;       // an epoch is
  Clock::time_point began_;      // it did
};

}  // namespace dtrain::observers
