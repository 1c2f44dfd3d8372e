// The names of detectron2's GeneralizedRCNN with a ResNet, a feature pyramid and its StandardROIHeads, as its
// state_dict() has them. Images are BGR there unless INPUT.FORMAT says RGB. Background is the last class of scores;
// boxes and masks have none.
#pragma once

#include "models/detection/weight_names.h"

namespace dtrain::models {

const WeightNames& detectron2_names();

}  // namespace dtrain::models
