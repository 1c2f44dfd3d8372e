// What the programs for images share: models by the name that a flag gives, and the pixels that a model is given.
#pragma once

#include <string>

#include "data/catalog.h"
#include "libdtrain/ops/pointwise.h"
#include "models/catalog.h"

namespace dtrain::cli {

// models::find_classifier for --model. Throws Error naming the flag, the nearest name and all others.
const models::ClassifierInfo& find_model(const std::string& name, const std::string& dataset);

PixelNormalization normalization_of(const data::Pixels& pixels);

}  // namespace dtrain::cli
