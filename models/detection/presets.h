// The conventions of the programs that detectors came from, by name.
#pragma once

#include <string>
#include <vector>

#include "models/detection/options.h"

namespace dtrain::models {

struct DetectorPreset {
  std::string name;
  std::string about;  // one line
  DetectorOptions options;
};

// "torchvision", "tensorpack", "tensorpack2019" and "aws": Mask R-CNN with ResNet-50 and FPN each.
const std::vector<DetectorPreset>& detector_presets();
// Throws Error naming those that there are.
const DetectorPreset& detector_preset(const std::string& name);

}  // namespace dtrain::models
