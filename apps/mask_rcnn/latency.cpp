#include "apps/mask_rcnn/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "libdtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

std::string row(const PartTimes& part, double whole) {
  const Latency latency = latency_of(part.seconds);
  return fmt::format("  {:<22}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>8.1f} %\n", part.name, 1e3 * latency.median,
                     1e3 * latency.p90, 1e3 * latency.p99, 1e3 * latency.mean, 100 * latency.mean / whole);
}

}  // namespace

Latency latency_of(std::span<const double> values) {
  DT_CHECK(!values.empty(), "latency: there are no times");
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto percentile = [&](size_t percent) { return sorted[(percent * sorted.size() + 99) / 100 - 1]; };
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {sum / static_cast<double>(sorted.size()), percentile(50), percentile(90), percentile(99)};
}

std::string latency_table(std::span<const PartTimes> parts, const PartTimes& whole) {
  const double mean = latency_of(whole.seconds).mean;
  std::string text =
      fmt::format("  {:<22}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "milliseconds", "median", "p90", "p99", "mean", "share");
  for (const PartTimes& part : parts) text += row(part, mean);
  return text + row(whole, mean);
}

}  // namespace dtrain::mask_rcnn
