// What the programs for images share: models by the name that a flag gives, and the pixels that a model is given.
#pragma once

#include <string>

#include "data/catalog.h"
#include "libdtrain/ops/mix_pixels.h"
#include "libdtrain/ops/pointwise.h"
#include "models/catalog.h"

namespace dtrain::cli {

// models::find_classifier for --model. Throws Error naming the flag, the nearest name and all others.
const models::ClassifierInfo& find_model(const std::string& name, const std::string& dataset);

PixelNormalization normalization_of(const data::Pixels& pixels);

// The images of a batch as a model takes them: normalised, and erased and mixed where the batch has the fields for it.
Tensor network_input(Context& context, const data::Batch& batch, const PixelNormalization& normalization, Erased value);

}  // namespace dtrain::cli
