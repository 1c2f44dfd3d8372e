// BucketTuner: online tuning of the gradient bucket size in the first steps of a run.
#pragma once

#include <vector>

#include "dtrain/distributed/bucketer.h"

namespace dtrain {

class BucketTuner {
 public:
  // Tries `first` and common sizes, where they give different partitions for gradients of `bytes`.
  BucketTuner(const BucketOptions& first, int64_t bytes);

  // Options of the next step; change every kSteps steps.
  const BucketOptions& next() const { return candidates_[seconds_.size() / kSteps]; }
  // Adds the duration of that step on this rank. Call it for the same steps on all ranks.
  void add(double seconds) { seconds_.push_back(seconds); }
  bool done() const { return seconds_.size() == candidates_.size() * kSteps; }
  // Once done: the candidate with the shortest time of the slowest rank, equal on all ranks. Collective.
  BucketOptions choose(Group& group) const;

  // Steps per candidate; the first is warm-up and not counted.
  static constexpr size_t kSteps = 3;

 private:
  std::vector<BucketOptions> candidates_;
  std::vector<double> seconds_;
};

}  // namespace dtrain
