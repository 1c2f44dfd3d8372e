// Weight names of the timm library for models whose timm names are not torchvision's.
#pragma once

#include "dtrain/models/classifier.h"
#include "dtrain/models/detection/weight_names.h"

namespace dtrain::models {

// Null for models that timm lacks, and for models with equal names in timm, such as ResNet v1.
const WeightNames* timm_names(const ClassifierInfo& info);

}  // namespace dtrain::models
