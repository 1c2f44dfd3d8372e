// Histograms of many numbers in TensorFlow's buckets, for TensorBoard.
// (TensorFlow, core/lib/histogram/histogram.cc)
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace dtrain {

struct HistogramStatistics {
  uint64_t count = 0;
  // Of no numbers: the largest double, and the lowest.
  double min = std::numeric_limits<double>::max(), max = std::numeric_limits<double>::lowest();
  double sum = 0, sum_squares = 0;
};

// Counts numbers in [limit of the bucket before, limit).
struct HistogramBucket {
  double limit = 0;
  uint64_t count = 0;
};

// The limits of the buckets grow by a tenth each, from 1e-12 to 1e20 on both sides of 0; the outermost buckets are
// open. A number that equals a limit belongs to the bucket above it. Sums are made in the order of the calls, so that
// equal numbers give equal bytes.
class Histogram {
 public:
  Histogram();
  // Infinities and NaN belong to no bucket, and are left out.
  void add(std::span<const float> values);

  uint64_t count() const { return statistics_.count; }
  const HistogramStatistics& statistics() const { return statistics_; }
  // In ascending order, with each run of empty buckets as one bucket, as TensorFlow writes them.
  std::vector<HistogramBucket> buckets() const;

 private:
  std::vector<uint64_t> counts_;
  HistogramStatistics statistics_;
};

}  // namespace dtrain
