// RankSpeeds: periodic comparison of the ranks' own step times, to detect stragglers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"
#include "libdtrain/run/stragglers.h"

namespace dtrain {

class RankSpeeds {
 public:
  explicit RankSpeeds(Group& group) : group_(group) {}
  // A step took this rank `own` seconds without waiting for others; before it the device was idle for `idle` of them.
  void add(double own, double idle);
  // Exchanges mean times since the last call and returns a message per rank that has become slow. Collective; call it
  // right after enqueuing a step, when all ranks are at the same place.
  std::vector<std::string> compare();
  // By the last comparison.
  const Straggler& slowest() const { return stragglers_.slowest(); }
  const std::vector<double>& seconds() const { return stragglers_.seconds(); }

 private:
  Group& group_;
  Stragglers stragglers_;
  double own_ = 0, idle_ = 0;
  uint64_t steps_ = 0;
  double compared_for_ = 0;  // seconds of the last comparison, during which a device may have been idle
};

}  // namespace dtrain
