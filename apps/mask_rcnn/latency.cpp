#include "apps/mask_rcnn/latency.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

namespace dtrain::mask_rcnn {
namespace {

using Clock = std::chrono::steady_clock;

// First and last stage of an image.
constexpr const char *kPlace = "decode and resize", *kPaste = "download and paste";

// Times the stages of one image.
class Stopwatch {
 public:
  Stopwatch(Context& context, DetectionTimes& times) : context_(context), times_(times) {}

  // Ends the current stage and begins the next.
  void begin(const char* next) {
    context_.synchronize("benchmark");
    const Clock::time_point now = Clock::now();
    seconds_of(part_).push_back(std::chrono::duration<double>(now - last_).count());
    part_ = next;
    last_ = now;
  }
  void end() {
    begin("");
    times_.whole.seconds.push_back(std::chrono::duration<double>(last_ - began_).count());
  }

 private:
  std::vector<double>& seconds_of(std::string_view part) {
    const auto known = std::ranges::find(times_.parts, part, &PartTimes::name);
    if (known != times_.parts.end()) return known->seconds;
    std::string key(part);
    std::ranges::replace(key, ' ', '_');
    return times_.parts.emplace_back(PartTimes{std::string(part), key}).seconds;
  }

  Context& context_;
  DetectionTimes& times_;
  const char* part_ = kPlace;
  Clock::time_point began_ = Clock::now(), last_ = began_;
};

// Returns the number of detections.
size_t run_once(Predictor& predictor, const EncodedFile& file, DetectionTimes& times) try {
  Stopwatch watch(predictor.context(), times);
  const detection::PlacedImage image =
      predictor.place(detection::decode_image(file.bytes, {.orientation = predictor.orientation()}));
  const auto found = predictor.detect(image, [&](const char* part) { watch.begin(part); });
  watch.begin(kPaste);
  const size_t count = predictor.in_file(found, image.place).size();
  watch.end();
  times.network_sizes.insert(fmt::format("{} x {}", image.pixels.dim(2), image.pixels.dim(1)));
  return count;
} catch (const Error& error) {
  throw Error(error.fault(), file.name + ": " + error.what());
}

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

DetectionTimes time_detection(Predictor& predictor, std::span<const EncodedFile> files, int64_t warmup, int64_t runs) {
  DetectionTimes ignored, times;
  size_t found = 0;
  for (int64_t i = 0; i < warmup + runs; ++i) {
    const EncodedFile& file = files[static_cast<size_t>(i) % files.size()];
    const size_t count = run_once(predictor, file, i < warmup ? ignored : times);
    if (i >= warmup) found += count;
  }
  times.found = static_cast<double>(found) / static_cast<double>(runs);
  return times;
}

}  // namespace dtrain::mask_rcnn
