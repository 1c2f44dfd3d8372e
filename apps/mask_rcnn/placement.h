// Placement of images in evaluation.
#pragma once

#include "apps/detection/placed_image.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// Resized as configured, on a canvas with sides rounded up to multiples of 32.
detection::Placement evaluation_placement(const data::ImageSize& image, const DataSettings& settings);

}  // namespace dtrain::mask_rcnn
