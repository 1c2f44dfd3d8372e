#include "dtrain/train/activation_ranges.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr size_t kBins = 4096;
constexpr uint8_t kMiddle = 128;
constexpr float kLevels = 255, kSignedLevels = 127;  // above the zero point
constexpr double kLeftOut = 1e-4;                    // of RangeRule::percentile
constexpr int kLimits = 64;                          // candidates of RangeRule::squared_error
constexpr float kLeastLimit = 0x1p-100f;             // keeps kBins / limit finite in f32

}  // namespace

const char* name_of(RangeRule rule) {
  switch (rule) {
    case RangeRule::max:
      return "max";
    case RangeRule::percentile:
      return "percentile";
    case RangeRule::squared_error:
      break;
  }
  return "squared error";
}

// Merges pairs of bins until the limit exceeds `most`: counts stay exact.
void ActivationRange::grow(float most) {
  if (bins_.empty()) bins_.resize(kBins);
  if (limit_ == 0 && most > 0) limit_ = std::max(kLeastLimit, std::ldexp(1.0f, std::ilogb(most)));
  while (most >= limit_ && most > 0) {
    for (size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
    std::fill(bins_.begin() + kBins / 2, bins_.end(), 0);
    limit_ *= 2;
  }
}

void ActivationRange::add(std::span<const float> values) {
  float low = std::numeric_limits<float>::infinity(), high = -low, sum = 0;
  for (const float value : values) {
    low = value < low ? value : low;
    high = value > high ? value : high;
    sum += value - value;  // NaN if any value is not finite
  }
  if (sum != 0 || std::isnan(sum)) throw Error(Fault::numeric, "an activation is not finite");
  const float most = std::max(std::fabs(low), std::fabs(high));
  if (values.empty() || most > std::ldexp(1.0f, 100)) {
    if (!values.empty()) throw Error(Fault::numeric, concat("an activation of ", most, " is too large for int8"));
    return;
  }
  lowest_ = std::min(lowest_, low);
  most_ = std::max(most_, most);
  grow(most);
  if (limit_ == 0) {
    bins_[0] += values.size();
    return;
  }
  const float factor = static_cast<float>(kBins) / limit_;
  for (const float value : values) ++bins_[static_cast<size_t>(std::fabs(value) * factor)];
}

// By bin centres: elements below half a level become zero, others are off by up to half a level.
float ActivationRange::least_error_limit(float levels) const {
  const double width = double{limit_} / kBins;
  double best = std::numeric_limits<double>::infinity();
  float found = most_;
  for (int i = kLimits; i > kLimits / 8; --i) {
    const double limit = double{most_} * i / kLimits, level = limit / levels;
    double error = 0;
    for (size_t bin = 0; bin < kBins && static_cast<double>(bin) * width <= most_; ++bin) {
      if (bins_[bin] == 0) continue;
      const double x = (static_cast<double>(bin) + 0.5) * width, beyond = std::max(x - limit, 0.0);
      const double inside = bin == 0 ? 0 : std::min(x * x, level * level / 12);
      error += static_cast<double>(bins_[bin]) * (beyond > 0 ? beyond * beyond : inside);
    }
    if (error < best) {
      best = error;
      found = static_cast<float>(limit);
    }
  }
  return found;
}

float ActivationRange::limit_by(RangeRule rule, float levels) const {
  if (rule == RangeRule::squared_error) return least_error_limit(levels);
  if (rule == RangeRule::max) return most_;
  uint64_t all = 0, above = 0;
  for (const uint64_t count : bins_) all += count;
  size_t bin = kBins;
  while (bin > 1 && static_cast<double>(above + bins_[bin - 1]) <= kLeftOut * static_cast<double>(all))
    above += bins_[--bin];
  return std::min(most_, static_cast<float>(bin) * limit_ / kBins);
}

QuantParams ActivationRange::form(RangeRule rule, bool closed_by_relu) const {
  const bool from_zero = closed_by_relu || lowest_ >= 0;
  const float levels = from_zero ? kLevels : kSignedLevels;
  const float limit = most_ > 0 ? limit_by(rule, levels) : levels;
  return {.scale = std::max(limit / levels, std::numeric_limits<float>::min()),
          .zero = from_zero ? uint8_t{0} : kMiddle};
}

}  // namespace dtrain
