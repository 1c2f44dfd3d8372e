// The names of TensorPack's examples/FasterRCNN, which AWS Mask R-CNN shares. Images are BGR there. Background is class
// 0, boxes are (class, x, y, w, h) as here, and there is no mask of the background.
#pragma once

#include "models/detection/weight_names.h"

namespace dtrain::models {

const WeightNames& tensorpack_names();

}  // namespace dtrain::models
