// How large the elements of a tensor are, over many of them, and which bytes stand for them best.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "libdtrain/autograd/quantized_layer.h"

namespace dtrain {

// How much of a range its bytes cover.
enum class RangeRule {
  max,            // all of it
  percentile,     // all but 1 in 10,000 elements, the largest, which become the last byte
  squared_error,  // as much as makes the mean squared error of the elements the least
};
inline constexpr RangeRule kRangeRules[] = {RangeRule::max, RangeRule::percentile, RangeRule::squared_error};
// "max", "percentile", "squared error"
const char* name_of(RangeRule rule);

// Counts of elements by their magnitude, in equal bins, from 0 to a limit that grows.
class ActivationRange {
 public:
  // Throws Error(Fault::numeric) where one is not finite.
  void add(std::span<const float> values);
  float lowest() const { return lowest_; }
  // Its zero is 0 where no element was negative, or where those that were become 0 anyway, else 128.
  ByteForm form(RangeRule rule, bool closed_by_relu = false) const;

 private:
  void grow(float most);
  float limit_by(RangeRule rule, float levels) const;
  float least_error_limit(float levels) const;

  float lowest_ = std::numeric_limits<float>::infinity(), most_ = 0, limit_ = 0;
  std::vector<uint64_t> bins_;
};

}  // namespace dtrain
