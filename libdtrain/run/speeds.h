// RankSpeeds: how long each rank takes for its own part of a step, compared now and then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"
#include "libdtrain/run/stragglers.h"

namespace dtrain {

class RankSpeeds {
 public:
  explicit RankSpeeds(Group& group) : group_(group) {}
  // A step has taken this rank `own` seconds without its wait for others, `idle` of which the device stood still before
  // it.
  void add(double own, double idle);
  // Shares the means of the steps since the last call and returns a line for people about each rank that has become
  // slow. Collective; to be called where a step has been queued, as all ranks are then at the same place.
  std::vector<std::string> compare();
  // By the last comparison.
  const Straggler& slowest() const { return stragglers_.slowest(); }
  const std::vector<double>& seconds() const { return stragglers_.seconds(); }

 private:
  Group& group_;
  Stragglers stragglers_;
  double own_ = 0, idle_ = 0;
  uint64_t steps_ = 0;
  double compared_for_ = 0;  // seconds that the last comparison took, for which a device may have stood still
};

}  // namespace dtrain
