#include "dtrain/io/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace dtrain {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

// Where buckets end, in ascending order.
std::vector<double> make_limits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(kLargest);
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

const std::vector<double>& limits() {
  static const std::vector<double> all = make_limits();
  return all;
}

// The bucket of the least float of each cell, which are those with the same upper 16 bits: a cell is narrower than a
// bucket, so that its other floats are in the same bucket or in the next one, but around 0.
constexpr int kCellBits = 16;
using Cells = std::array<uint16_t, size_t{1} << kCellBits>;

Cells make_cells() {
  Cells cells;
  for (uint32_t cell = 0; cell < cells.size(); ++cell) {
    const bool negative = cell >> (kCellBits - 1) != 0;
    const auto least = std::bit_cast<float>(cell << kCellBits | (negative ? 0xffffu : 0u));
    const auto limit = std::upper_bound(limits().begin(), limits().end(), double{least});
    cells[cell] = static_cast<uint16_t>(limit - limits().begin());
  }
  return cells;
}

size_t bucket_of(float value) {
  static const Cells cells = make_cells();
  size_t bucket = cells[std::bit_cast<uint32_t>(value) >> kCellBits];
  while (limits()[bucket] <= double{value}) ++bucket;
  return bucket;
}

}  // namespace

Histogram::Histogram() : counts_(limits().size()) {}

void Histogram::add(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double number = value;
    ++counts_[bucket_of(value)];
    ++statistics_.count;
    statistics_.min = std::min(statistics_.min, number);
    statistics_.max = std::max(statistics_.max, number);
    statistics_.sum += number;
    statistics_.sum_squares += number * number;
  }
}

std::vector<HistogramBucket> Histogram::buckets() const {
  std::vector<HistogramBucket> buckets;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0 && !buckets.empty() && buckets.back().count == 0)
      buckets.back().limit = limits()[i];
    else
      buckets.push_back({limits()[i], counts_[i]});
  }
  return buckets;
}

}  // namespace dtrain
