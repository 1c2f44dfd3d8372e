// What passes from one box head of a cascade to the next (Cai and Vasconcelos 2018): boxes that are closer to objects,
// and so can be matched with them more strictly. No gradient leads through them.
#pragma once

#include "libdtrain/ops/roi_samples.h"
#include "models/detection/options.h"
#include "models/detection/truth.h"

namespace dtrain::models {

// What a head makes of regions rois [n * s, 4] of n images of `sizes` [n, 2] by its deltas [n * s, 4]: boxes [n * s,
// 4], clipped to the images. Padding stays 0.
Tensor refined_boxes(Context& context, const Tensor& deltas, const Tensor& rois, const Tensor& sizes,
                     const BoxCoder& coder);

// The regions that the next head is trained on: all refined boxes [n * s, 4] that have an area, matched anew at an IoU
// of `iou`. Nothing is drawn. `coder` is the next head's.
RoiSamples refined_regions(Context& context, const Tensor& boxes, const DetectionTruth& truth, float iou,
                           const BoxCoder& coder);

// Regions [n * s] of n images with s places for each; what they hold is undefined.
RoiSamples empty_regions(Context& context, int64_t places);

}  // namespace dtrain::models
