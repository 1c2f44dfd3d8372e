// Ground truth of a batch for training a detector.
#pragma once

#include <tuple>

#include "dtrain/ops/crop_masks.h"

namespace dtrain::models {

// n images with at most g objects each; rows beyond the count are 0.
struct DetectionTruth {
  Tensor sizes;    // [n, 2] f32: height and width of each image on its canvas, in pixels
  Tensor counts;   // [n] i32: objects
  Tensor boxes;    // [n, g, 4] f32
  Tensor classes;  // [n, g] i32, from 1 on
  RleMasks masks;  // objects without runs are ignored in the mask loss

  auto tensors() const { return std::tie(sizes, counts, boxes, classes, masks); }
};

}  // namespace dtrain::models
