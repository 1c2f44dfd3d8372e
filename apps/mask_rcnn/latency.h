// Latency statistics of a series of runs, by stage.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace dtrain::mask_rcnn {

// In the unit of the values.
struct Latency {
  double mean = 0, median = 0, p90 = 0, p99 = 0;
};

// Nearest-rank percentiles: p90 is the smallest value that at least 90 % of the values do not exceed; p50 is the
// median. Throws Error without values.
Latency latency_of(std::span<const double> values);

struct PartTimes {
  std::string name{}, key{};      // display name, and JSON key
  std::vector<double> seconds{};  // of each run
};

// A line per stage and a total, in milliseconds, with each stage's share of the mean total.
std::string latency_table(std::span<const PartTimes> parts, const PartTimes& whole);

}  // namespace dtrain::mask_rcnn
