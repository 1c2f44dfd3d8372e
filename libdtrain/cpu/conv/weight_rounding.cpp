#include "libdtrain/cpu/conv/weight_rounding.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>

namespace dtrain::cpu {
namespace {

constexpr float kMaxInteger = 127;

float step_of(std::span<const float> w, int max_pair_sum) {
  const auto limit = static_cast<float>(max_pair_sum);
  float largest = 0, step = 0;
  for (const float value : w) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < w.size(); i += 2) step = std::max(step, std::fabs(w[i] / limit + w[i + 1] / limit));
  return largest > kMaxInteger * FLT_MIN ? std::max(step, largest / kMaxInteger) : 1;
}

// The integers of a filter, and the rounding error of each, in steps.
struct Rounding {
  std::vector<int8_t> integers;
  std::vector<float> error;

  int pair_of(size_t i) const { return integers[i] + integers[i ^ 1]; }
  void move(size_t i, int step) {
    integers[i] = static_cast<int8_t>(integers[i] + step);
    error[i] -= static_cast<float>(step);
  }
};

Rounding nearest_of(std::span<const float> w, float step, int max_pair_sum) {
  Rounding result;
  for (const float value : w) {
    const float exact = std::clamp(value / step, -kMaxInteger, kMaxInteger), nearest = std::nearbyint(exact);
    result.integers.push_back(std::isnan(nearest) ? int8_t{0} : static_cast<int8_t>(nearest));
    result.error.push_back(exact - nearest);
  }
  for (size_t i = 0; i < w.size(); i += 2)  // both of a pair may have been rounded up
    if (std::abs(result.pair_of(i)) > max_pair_sum) result.move(i, result.integers[i] > 0 ? -1 : 1);
  return result;
}

// Rounds the integers of the largest errors the other way, until the errors add up to at most half a step.
void keep_sum(Rounding& rounding, int max_pair_sum) {
  double sum = 0;
  for (const float error : rounding.error) sum += error;
  if (!(std::fabs(sum) > 0.5)) return;  // a NaN, too
  const int step = sum > 0 ? 1 : -1;
  const auto error = [&](size_t i) { return rounding.error[i] * static_cast<float>(step); };
  std::vector<size_t> movable;
  for (size_t i = 0; i < rounding.integers.size(); ++i) {
    const bool fits = std::abs(rounding.integers[i] + step) <= kMaxInteger &&
                      std::abs(rounding.pair_of(i) + step) < max_pair_sum;  // the other of the pair may move as well
    if (error(i) > 0 && fits) movable.push_back(i);
  }
  const auto count = std::min(std::lround(std::fabs(sum)), std::ssize(movable));
  std::nth_element(movable.begin(), movable.begin() + count, movable.end(),
                   [&](size_t a, size_t b) { return error(a) != error(b) ? error(a) > error(b) : a < b; });
  for (const size_t i : std::span(movable).first(static_cast<size_t>(count))) rounding.move(i, step);
}

}  // namespace

QuantizedFilter quantize_filter(std::span<const float> w, int max_pair_sum) {
  const float step = step_of(w, max_pair_sum);
  Rounding rounding = nearest_of(w, step, max_pair_sum);
  keep_sum(rounding, max_pair_sum);
  return {step, std::move(rounding.integers)};
}

}  // namespace dtrain::cpu
