// Histograms of many numbers in TensorFlow's buckets, for TensorBoard.
//   HistogramProto { 1: min  2: max  3: num  4: sum  5: sum_squares  6: repeated bucket_limit  7: repeated bucket },
//   all of them doubles. (TensorFlow, core/lib/histogram/histogram.cc and core/framework/summary.proto)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain {

// The limits of the buckets grow by a tenth each, from 1e-12 to 1e20 on both sides of 0; the outermost buckets are
// open. A number that equals a limit belongs to the bucket above it. Sums are made in the order of the calls, so that
// equal numbers give equal bytes.
class Histogram {
 public:
  Histogram();
  // Infinities and NaN belong to no bucket, and are left out.
  void add(std::span<const float> values);

  uint64_t count() const { return count_; }
  // The message, in which runs of empty buckets are one bucket, as TensorFlow writes them.
  std::string bytes() const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  double min_, max_, sum_ = 0, squares_ = 0;
};

}  // namespace dtrain
