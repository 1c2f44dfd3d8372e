// Chart axes: limits and tick labels.
#pragma once

#include <vector>

namespace dtrain::report {

// Ignores non-finite values. Without values: 0 to 1.
struct Range {
  double low = 0, high = 1;
  bool empty = true;
  void add(double value);
};

struct Axis {
  double low = 0, high = 1;
  double share(double value) const { return (value - low) / (high - low); }  // 0 to 1
};

// Rounded outwards.
Axis round_axis(const Range& range);

// About `count` round tick values.
std::vector<double> ticks_of(const Axis& axis, int count);

}  // namespace dtrain::report
