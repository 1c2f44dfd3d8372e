#include "libdtrain/io/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "libdtrain/io/protobuf.h"

namespace dtrain {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

enum HistogramField : uint32_t { kMin = 1, kMax, kNum, kSum, kSumSquares, kBucketLimit, kBucket };

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

void put_doubles(std::string& out, uint32_t field, const std::vector<double>& values) {
  put_length(out, field, sizeof(double) * values.size());
  for (const double value : values) put_fixed(out, std::bit_cast<uint64_t>(value));
}

}  // namespace

Histogram::Histogram() : buckets_(limits().size()), min_(kLargest), max_(-kLargest) {}

void Histogram::add(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double number = value;
    ++buckets_[bucket_of(value)];
    ++count_;
    min_ = std::min(min_, number);
    max_ = std::max(max_, number);
    sum_ += number;
    squares_ += number * number;
  }
}

std::string Histogram::bytes() const {
  std::vector<double> ends, counts;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0 && !counts.empty() && counts.back() == 0) {
      ends.back() = limits()[i];
      continue;
    }
    ends.push_back(limits()[i]);
    counts.push_back(static_cast<double>(buckets_[i]));
  }
  std::string message;
  put_double(message, kMin, min_);
  put_double(message, kMax, max_);
  put_double(message, kNum, static_cast<double>(count_));
  put_double(message, kSum, sum_);
  put_double(message, kSumSquares, squares_);
  put_doubles(message, kBucketLimit, ends);
  put_doubles(message, kBucket, counts);
  return message;
}

}  // namespace dtrain
