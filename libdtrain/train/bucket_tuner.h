// BucketTuner: finds the size of the gradient buckets by trying, in the first steps of a run.
#pragma once

#include <vector>

#include "libdtrain/distributed/bucketer.h"

namespace dtrain {

class BucketTuner {
 public:
  // Tries `first` and sizes around what is usual, as far as they differ for gradients of `bytes`.
  BucketTuner(const BucketOptions& first, int64_t bytes);

  // The options of the next step; others after every kSteps steps.
  const BucketOptions& next() const { return candidates_[seconds_.size() / kSteps]; }
  // What that step took on this rank. At all ranks in the same steps.
  void add(double seconds) { seconds_.push_back(seconds); }
  bool done() const { return seconds_.size() == candidates_.size() * kSteps; }
  // Once done: the candidate with which the slowest rank was fastest, the same on all ranks. Collective.
  BucketOptions choose(Group& group) const;

  // The first of them is not counted: memory and connections are made in it.
  static constexpr size_t kSteps = 3;

 private:
  std::vector<BucketOptions> candidates_;
  std::vector<double> seconds_;
};

}  // namespace dtrain
