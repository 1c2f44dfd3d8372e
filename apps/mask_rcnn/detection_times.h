// How long a detector takes for images, one at a time, and for which part of its work.
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

// An image as it is in its file.
struct EncodedFile {
  std::string name{};
  std::vector<std::byte> bytes{};
};

struct DetectionTimes {
  std::vector<PartTimes> parts{};  // by the names of Tape::part(), in the order of the work
  PartTimes whole{"whole image", "image"};
  std::set<std::string> network_sizes{};  // of what the network is given, "1088 x 800"
  double found = 0;                       // objects of an image
};

// Detects objects in the files in turn, `warmup` times before it takes the times of `runs`. A part is over when the
// device has done its work. Throws Error(Fault::data), which names the file, where one cannot be decoded.
DetectionTimes time_detection(Predictor& predictor, std::span<const EncodedFile> files, int64_t warmup, int64_t runs);

}  // namespace dtrain::mask_rcnn
