// Images of a batch as the network reads them.
#pragma once

#include <vector>

#include "apps/detection/input.h"
#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/image.h"

namespace dtrain::mask_rcnn {

// The first images of a training batch, augmented and without padding, with boxes and masks of their objects drawn.
// `categories`: of the classes from 1 on. Waits for the device.
std::vector<data::Image> batch_pictures(Context& context, const detection::DeviceBatch& batch,
                                        const std::vector<data::coco::Category>& categories);

}  // namespace dtrain::mask_rcnn
