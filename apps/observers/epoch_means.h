// Scalars of an epoch, as TensorPack reports them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/observers/scalar_tags.h"

namespace dtrain::observers {

// Losses and metrics are means over the epoch's steps in this process; learning rate and L2 term are the last values.
class EpochMeans {
 public:
  void add(const Stepped& event);
  uint64_t steps() const { return steps_; }
  // The scalars under the names of `tags`, sorted by the engine's names; the next epoch begins.
  std::vector<MetricValue> take(const ScalarTags& tags);

 private:
  std::map<std::string, double> sums_;  // over the current epoch's steps, by the engine's names
  uint64_t steps_ = 0;                  // their number
  double l2_loss_ = 0;                  // of the last displayed step
};

}  // namespace dtrain::observers
