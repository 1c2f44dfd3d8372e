#include "libdtrain/cpu/byte_rounding.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>

namespace dtrain::cpu {
namespace {

constexpr float kMostNumber = 127;

float level_of(std::span<const float> w, int most_of_pair) {
  const auto limit = static_cast<float>(most_of_pair);
  float most = 0, level = 0;
  for (const float value : w) most = std::max(most, std::fabs(value));
  for (size_t i = 0; i < w.size(); i += 2) level = std::max(level, std::fabs(w[i] / limit + w[i + 1] / limit));
  return most > kMostNumber * FLT_MIN ? std::max(level, most / kMostNumber) : 1;
}

// The numbers of a filter, and what each has lost, in levels.
struct Rounding {
  std::vector<int8_t> numbers;
  std::vector<float> lost;

  int pair_of(size_t i) const { return numbers[i] + numbers[i ^ 1]; }
  void move(size_t i, int step) {
    numbers[i] = static_cast<int8_t>(numbers[i] + step);
    lost[i] -= static_cast<float>(step);
  }
};

Rounding nearest_of(std::span<const float> w, float level, int most_of_pair) {
  Rounding result;
  for (const float value : w) {
    const float exact = std::clamp(value / level, -kMostNumber, kMostNumber), nearest = std::nearbyint(exact);
    result.numbers.push_back(std::isnan(nearest) ? int8_t{0} : static_cast<int8_t>(nearest));
    result.lost.push_back(exact - nearest);
  }
  for (size_t i = 0; i < w.size(); i += 2)  // both of a pair may have been rounded up
    if (std::abs(result.pair_of(i)) > most_of_pair) result.move(i, result.numbers[i] > 0 ? -1 : 1);
  return result;
}

// Moves those numbers that have lost most to the other side of what they stand for.
void keep_sum(Rounding& rounding, int most_of_pair) {
  double sum = 0;
  for (const float lost : rounding.lost) sum += lost;
  if (!(std::fabs(sum) > 0.5)) return;  // a NaN, too
  const int step = sum > 0 ? 1 : -1;
  const auto lost = [&](size_t i) { return rounding.lost[i] * static_cast<float>(step); };
  std::vector<size_t> movable;
  for (size_t i = 0; i < rounding.numbers.size(); ++i) {
    const bool fits = std::abs(rounding.numbers[i] + step) <= kMostNumber &&
                      std::abs(rounding.pair_of(i) + step) < most_of_pair;  // the other of the pair may move as well
    if (lost(i) > 0 && fits) movable.push_back(i);
  }
  const auto count = std::min(std::lround(std::fabs(sum)), std::ssize(movable));
  std::nth_element(movable.begin(), movable.begin() + count, movable.end(),
                   [&](size_t a, size_t b) { return lost(a) != lost(b) ? lost(a) > lost(b) : a < b; });
  for (const size_t i : std::span(movable).first(static_cast<size_t>(count))) rounding.move(i, step);
}

}  // namespace

RoundedFilter rounded_filter(std::span<const float> w, int most_of_pair) {
  const float level = level_of(w, most_of_pair);
  Rounding rounding = nearest_of(w, level, most_of_pair);
  keep_sum(rounding, most_of_pair);
  return {level, std::move(rounding.numbers)};
}

}  // namespace dtrain::cpu
