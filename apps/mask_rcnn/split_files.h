// Files of splits.
#pragma once

#include <string>

#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// Annotation file and image folder of a split, which have its name without TensorPack's prefix coco_. minival2014,
// valminusminival2014 and val2017_100 without a folder have TensorPack's.
std::string annotations_of(const DataSettings& settings, const std::string& split);
std::string images_of(const DataSettings& settings, const std::string& split);

}  // namespace dtrain::mask_rcnn
