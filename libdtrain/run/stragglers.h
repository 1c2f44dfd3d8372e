// Stragglers: which rank makes the others wait, by the time that each takes for its own part of a step.
#pragma once

#include <vector>

namespace dtrain {

struct Straggler {
  int rank = 0;
  double factor = 0;  // as a multiple of the ranks' median; 0: nothing is known
};

class Stragglers {
 public:
  // Takes the seconds per step of each rank, without its wait for others; 0 for a rank that has made no step. Returns
  // the ranks to warn about: each once, when it has been above kFactor times the median kPatience times in a row.
  std::vector<Straggler> add(const std::vector<double>& seconds);
  // By what was added last, and that itself.
  const Straggler& slowest() const { return slowest_; }
  const std::vector<double>& seconds() const { return seconds_; }

  static constexpr double kFactor = 1.5;
  static constexpr int kPatience = 3;

 private:
  std::vector<int> slow_;  // by rank: times in a row
  std::vector<bool> warned_;
  Straggler slowest_;
  std::vector<double> seconds_;
};

}  // namespace dtrain
