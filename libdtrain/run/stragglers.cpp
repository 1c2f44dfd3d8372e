// Consecutive counts of slow ranks.
#include "libdtrain/run/stragglers.h"

#include <algorithm>

namespace dtrain {

std::vector<Straggler> Stragglers::add(const std::vector<double>& seconds) {
  seconds_ = seconds;
  slow_.resize(seconds.size());
  warned_.resize(seconds.size());
  slowest_ = {};
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  // Lower median: with two ranks the slow one is compared with the other.
  const double median = sorted.empty() || sorted.front() <= 0 ? 0 : sorted[(sorted.size() - 1) / 2];
  std::vector<Straggler> found;
  if (median <= 0) return found;
  for (size_t rank = 0; rank < seconds.size(); ++rank) {
    const Straggler one{static_cast<int>(rank), seconds[rank] / median};
    if (one.factor > slowest_.factor) slowest_ = one;
    slow_[rank] = one.factor > kFactor ? slow_[rank] + 1 : 0;
    if (slow_[rank] < kPatience || warned_[rank]) continue;
    warned_[rank] = true;
    found.push_back(one);
  }
  return found;
}

}  // namespace dtrain
