// Latency of a detector at batch 1, by stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "apps/mask_rcnn/latency.h"
#include "apps/mask_rcnn/predictor.h"

namespace dtrain::mask_rcnn {

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
