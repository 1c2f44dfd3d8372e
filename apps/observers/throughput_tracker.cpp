// Formats: see performance.py in AWS Mask R-CNN.
#include "apps/observers/throughput_tracker.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

// Two decimals, with commas as thousands separators.
std::string grouped(double value) {
  std::string text = fmt::format("{:.2f}", value);
  const size_t first = text.find_first_of("0123456789");
  for (size_t at = text.find('.'); at != text.npos && at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

void ThroughputTracker::stepping(uint64_t) {
  if (under_way_) return;
  under_way_ = true;
  began_ = Clock::now();
}

void ThroughputTracker::stepped(const Stepped& event) {
  seconds_.push_back(event.seconds);
  if (options_.every > 0 && seconds_.size() % options_.every == 0) tell_of_steps(event.step);
  if (event.step % options_.period != 0) return;
  tell_of_epoch(event.step);
  seconds_.clear();
  began_ = Clock::now();
  under_way_ = event.more_under_way;
}

void ThroughputTracker::tell_of_steps(uint64_t step) {
  const auto last = seconds_.end() - static_cast<std::ptrdiff_t>(options_.every);
  const double duration = std::accumulate(last, seconds_.end(), 0.0) / static_cast<double>(options_.every);
  const double throughput = options_.images / duration;
  const std::string prefix = fmt::format("[ThroughputTracker] Over last {} steps", options_.every);
  options_.line(fmt::format("{}, MeanDuration={} seconds", prefix, grouped(duration)));
  options_.line(fmt::format("{}, MeanThroughput={} items/sec", prefix, grouped(throughput)));
  options_.put(step, {{"Throughput/MeanDuration", duration}, {"Throughput/MeanThroughput", throughput}});
}

void ThroughputTracker::tell_of_epoch(uint64_t step) {
  const double wall = std::chrono::duration<double>(Clock::now() - began_).count();
  const double overhead = std::max(wall - std::accumulate(seconds_.begin(), seconds_.end(), 0.0), 0.0);
  const double throughput = options_.images * static_cast<double>(seconds_.size()) / wall;
  const std::vector<MetricValue> values = {
      {"MeanEpochThroughput", throughput}, {"EpochWallClockDuration", wall}, {"CallbackOverheadDuration", overhead}};
  std::vector<MetricValue> scalars;
  for (const MetricValue& value : values) {
    options_.line(fmt::format("[ThroughputTracker] Over last epoch, {}: {}", value.name, grouped(value.value)));
    scalars.push_back({"Throughput/" + value.name, value.value});
  }
  options_.put(step, scalars);
}

}  // namespace dtrain::observers
