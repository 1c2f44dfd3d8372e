// Axes of charts: where they end, and what is written at them.
#pragma once

#include <vector>

namespace dtrain::report {

// What is not finite is left out. Without any number it is from 0 to 1.
struct Range {
  double low = 0, high = 1;
  bool empty = true;
  void add(double value);
};

struct Axis {
  double low = 0, high = 1;
  double share(double value) const { return (value - low) / (high - low); }  // 0 to 1
};

// From a round number below all to one above.
Axis round_axis(const Range& range);

// Round numbers on the axis, about `count`.
std::vector<double> ticks_of(const Axis& axis, int count);

}  // namespace dtrain::report
