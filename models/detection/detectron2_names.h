// Parameter names of detectron2's GeneralizedRCNN with ResNet, FPN and StandardROIHeads, as in its state_dict(). Its
// images are BGR unless INPUT.FORMAT is RGB. Background is the last class of the scores; boxes and masks have no
// background.
#pragma once

#include "dtrain/models/detection/weight_names.h"

namespace dtrain::models {

const WeightNames& detectron2_names();

}  // namespace dtrain::models
