// Parameter names of TensorPack's examples/FasterRCNN, shared by AWS Mask R-CNN. Its images are BGR. Background is
// class 0, boxes are (class, x, y, w, h) as here, and the background has no mask.
#pragma once

#include "dtrain/models/detection/weight_names.h"

namespace dtrain::models {

const WeightNames& tensorpack_names();

}  // namespace dtrain::models
