// Named presets with the conventions of other Mask R-CNN implementations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dtrain/models/detection/options.h"

namespace dtrain::models {

struct DetectorPreset {
  std::string name;
  std::string about;  // one line
  DetectorOptions options;
};

// "torchvision", "tensorpack", "tensorpack2019" and "aws"; each is Mask R-CNN with ResNet-50 and FPN.
const std::vector<DetectorPreset>& detector_presets();
// Throws Error with the known names for an unknown one.
const DetectorPreset& detector_preset(std::string_view name);

}  // namespace dtrain::models
