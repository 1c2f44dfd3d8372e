// Candidates and their selection.
#include "libdtrain/train/bucket_tuner.h"

#include <algorithm>

namespace dtrain {

BucketTuner::BucketTuner(const BucketOptions& first, int64_t bytes) : candidates_{first} {
  for (const int64_t mebibytes : {1, 4, 10, 25, 64, 256}) {
    const BucketOptions candidate{.bytes = mebibytes << 20, .last_bytes = first.last_bytes};
    // All sizes above the gradients' size give one bucket.
    const bool known = std::ranges::any_of(candidates_, [&](const BucketOptions& other) {
      return other.bytes == candidate.bytes || (other.bytes >= bytes && candidate.bytes >= bytes);
    });
    if (!known) candidates_.push_back(candidate);
  }
}

BucketOptions BucketTuner::choose(Group& group) const {
  DT_CHECK(done(), "bucket tuner: chosen before all sizes were timed");
  std::vector<int64_t> slowest;  // nanoseconds per candidate
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const auto steps = seconds_.begin() + static_cast<std::ptrdiff_t>(i * kSteps);
    const double seconds = *std::min_element(steps + 1, steps + kSteps);
    slowest.push_back(group.extremes(static_cast<int64_t>(seconds * 1e9), "time of a size of buckets").second);
  }
  return candidates_[static_cast<size_t>(std::ranges::min_element(slowest) - slowest.begin())];
}

}  // namespace dtrain
