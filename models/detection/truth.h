// What a detector is trained on besides the images.
#pragma once

#include <tuple>

#include "libdtrain/ops/crop_masks.h"

namespace dtrain::models {

// Rows of n images with room for g objects each; what is beyond the count is 0.
struct DetectionTruth {
  Tensor sizes;    // [n, 2] f32: height and width of each image on its canvas
  Tensor counts;   // [n] i32: objects
  Tensor boxes;    // [n, g, 4] f32
  Tensor classes;  // [n, g] i32, from 1 on
  RleMasks masks;  // objects without runs have no part in the loss of masks

  auto tensors() const { return std::tie(sizes, counts, boxes, classes, masks); }
};

}  // namespace dtrain::models
