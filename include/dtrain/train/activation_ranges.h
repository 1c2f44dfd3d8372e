// ActivationRange: histogram of activation magnitudes for int8 calibration.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "dtrain/autograd/quantized_layer.h"

namespace dtrain {

// Clipping rule of an activation range.
enum class RangeRule {
  max,            // no clipping
  percentile,     // clips the largest 1 in 10,000 elements
  squared_error,  // minimises the mean squared quantisation error
};
inline constexpr RangeRule kRangeRules[] = {RangeRule::max, RangeRule::percentile, RangeRule::squared_error};
// "max", "percentile", "squared error"
const char* name_of(RangeRule rule);

// Histogram of magnitudes: equal bins from 0 to a limit that grows.
class ActivationRange {
 public:
  // Throws Error(Fault::numeric) for non-finite values.
  void add(std::span<const float> values);
  float lowest() const { return lowest_; }
  // Quantisation parameters. Zero point: 0 if no element was negative or a relu follows, else 128.
  QuantParams form(RangeRule rule, bool closed_by_relu = false) const;

 private:
  void grow(float most);
  float limit_by(RangeRule rule, float levels) const;
  float least_error_limit(float levels) const;

  float lowest_ = std::numeric_limits<float>::infinity(), most_ = 0, limit_ = 0;
  std::vector<uint64_t> bins_;
};

}  // namespace dtrain
