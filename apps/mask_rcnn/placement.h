// Where evaluation puts an image.
#pragma once

#include "apps/detection/placed_image.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// Resized by the settings' rule, on a canvas whose sides are the next multiples of 32.
detection::Placement evaluation_placement(const data::ImageSize& image, const DataSettings& settings);

}  // namespace dtrain::mask_rcnn
