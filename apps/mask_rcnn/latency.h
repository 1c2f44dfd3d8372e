// Times of a series of runs, in parts, and what they come to.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace dtrain::mask_rcnn {

// In the unit of the values.
struct Latency {
  double mean = 0, median = 0, p90 = 0, p99 = 0;
};

// Percentiles by the nearest rank: p90 is the smallest value that at least 90 % of the values do not exceed. The median
// is p50. Throws Error where there are no values.
Latency latency_of(std::span<const double> values);

struct PartTimes {
  std::string name{}, key{};      // for people, and in JSON
  std::vector<double> seconds{};  // of each run
};

// A line per part and one of the whole, in milliseconds, with the share of each part in the mean of the whole.
std::string latency_table(std::span<const PartTimes> parts, const PartTimes& whole);

}  // namespace dtrain::mask_rcnn
