// Stragglers: detection of ranks that slow the others down, by each rank's own step time.
#pragma once

#include <vector>

#include "dtrain/run/observer.h"

namespace dtrain {

class Stragglers {
 public:
  // Takes each rank's own seconds per step; 0: no step made. Returns ranks to warn about: each once, after exceeding
  // kFactor times the median kPatience times in a row.
  std::vector<Straggler> add(const std::vector<double>& seconds);
  // Slowest rank by the last call, and the values of that call.
  const Straggler& slowest() const { return slowest_; }
  const std::vector<double>& seconds() const { return seconds_; }

  static constexpr double kFactor = 1.5;
  static constexpr int kPatience = 3;

 private:
  std::vector<int> slow_;  // by rank: consecutive times
  std::vector<bool> warned_;
  Straggler slowest_;
  std::vector<double> seconds_;
};

}  // namespace dtrain
