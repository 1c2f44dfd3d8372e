// Refinement of boxes between the heads of Cascade R-CNN (Cai and Vasconcelos 2018). Boxes closer to objects are
// matched with a higher IoU threshold. There is no gradient through the boxes.
#pragma once

#include "dtrain/models/detection/options.h"
#include "dtrain/models/detection/truth.h"
#include "dtrain/ops/roi_samples.h"

namespace dtrain::models {

// Applies a head's deltas [n * s, 4] to the regions rois [n * s, 4] of n images of `sizes` [n, 2]. Returns boxes [n *
// s, 4], clipped to the images. Padding stays 0.
Tensor refined_boxes(Context& context, const Tensor& deltas, const Tensor& rois, const Tensor& sizes,
                     const BoxCoder& coder);

// Training regions of the next head: the refined boxes [n * s, 4] of positive area, rematched with IoU threshold `iou`,
// without sampling. `coder` belongs to the next head.
RoiSamples refined_regions(Context& context, const Tensor& boxes, const DetectionTruth& truth, float iou,
                           const BoxCoder& coder);

// Uninitialised regions [n * s] of n images with s places each.
RoiSamples empty_regions(Context& context, int64_t places);

}  // namespace dtrain::models
