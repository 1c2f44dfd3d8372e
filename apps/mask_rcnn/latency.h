// Latency of a detector at batch 1, by stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "apps/mask_rcnn/predictor.h"

namespace dtrain::mask_rcnn {

// In the unit of the values.
struct Latency {
  double mean = 0, median = 0, p90 = 0, p99 = 0;
};

// Nearest-rank percentiles: p90 is the smallest value that at least 90 % of the values do not exceed; p50 is the
// median. Throws Error without values.
Latency latency_of(std::span<const double> values);

struct PartTimes {
  std::string name{}, key{};      // display name, and JSON key
  std::vector<double> seconds{};  // of each run
};

// A line per stage and a total, in milliseconds, with each stage's share of the mean total.
std::string latency_table(std::span<const PartTimes> parts, const PartTimes& whole);

// An encoded image.
struct EncodedFile {
  std::string name{};
  std::vector<std::byte> bytes{};
};

struct DetectionTimes {
  std::vector<PartTimes> parts{};  // by name of Tape::part(), in execution order
  PartTimes whole{"whole image", "image"};
  std::set<std::string> network_sizes{};  // size of the network's input, "1088 x 800"
  double found = 0;                       // detections per image
};

// Runs the detector on the files in turn: `warmup` untimed, then `runs` timed. A stage ends when the device has
// finished its work. Throws Error(Fault::data) with the file name if one cannot be decoded.
DetectionTimes time_detection(Predictor& predictor, std::span<const EncodedFile> files, int64_t warmup, int64_t runs);

}  // namespace dtrain::mask_rcnn
