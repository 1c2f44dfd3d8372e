// What the library `timm` calls the weights of the models that it has, too, under names that are not torchvision's.
#pragma once

#include "models/classifier.h"
#include "models/detection/weight_names.h"

namespace dtrain::models {

// Null for a model that timm does not have, or has under the names that it has here, as timm's ResNets v1.
const WeightNames* timm_names(const ClassifierInfo& info);

}  // namespace dtrain::models
