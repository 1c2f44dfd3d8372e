#include "apps/report/axis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/report/chart.h"

namespace dtrain::report {
namespace {

// 1, 2 or 5 times a power of ten.
double round_pitch(double width, int count) {
  const double least = width / count, power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= least * 0.999) return digit * power;
  return 10 * power;
}

}  // namespace

void Range::add(double value) {
  if (!std::isfinite(value)) return;
  low = empty ? value : std::min(low, value);
  high = empty ? value : std::max(high, value);
  empty = false;
}

Axis round_axis(const Range& range) {
  double low = range.low, high = range.high;
  // Almost equal values, also at the limit of precision, are centred.
  const double least = std::max({1e-9 * std::max(std::abs(low), std::abs(high)), 1e-300});
  if (!(high - low > least)) {
    const double half = low == 0 ? 0.5 : std::abs(low) / 2;
    low = std::max(low - half, -1e300);
    high = std::min(high + half, 1e300);
  }
  const double pitch = round_pitch(high / 2 - low / 2, 4) * 2;
  const Axis axis{std::floor(low / pitch * 2) * pitch / 2, std::ceil(high / pitch * 2) * pitch / 2};
  return std::isfinite(axis.high - axis.low) && axis.high > axis.low ? axis : Axis{low / 2, high / 2};
}

std::vector<double> ticks_of(const Axis& axis, int count) {
  std::vector<double> ticks;
  const double pitch = round_pitch(axis.high - axis.low, count);
  if (!std::isfinite(pitch) || !(pitch > 0)) return ticks;
  const double first = std::ceil(axis.low / pitch - 1e-6);
  for (int i = 0; i < 4 * count && (first + i) * pitch <= axis.high + 1e-6 * pitch; ++i)
    ticks.push_back((first + i) * pitch + 0.0);
  return ticks;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e15) {
    for (const auto& [unit, letter] :
         {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e3, "k")})
      if (size >= unit) return fmt::format("{:.4g}{}", value / unit, letter);
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace dtrain::report
