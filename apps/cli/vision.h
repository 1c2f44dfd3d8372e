// Shared by programs for images: model lookup by flag, and preprocessing of batches.
#pragma once

#include <string>
#include <vector>

#include "dtrain/data/catalog.h"
#include "dtrain/models/catalog.h"
#include "dtrain/ops/mix_pixels.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain::cli {

// models::find_classifier for --model. Throws Error naming the flag, the nearest name and all others.
const models::ClassifierInfo& find_model(const std::string& name, const std::string& dataset);

PixelNormalization normalization_of(const data::Pixels& pixels);

// Input of the model from a batch: normalisation, then random erasing and mixing if the batch has their fields.
Tensor network_input(Context& context, const data::Batch& batch, const PixelNormalization& normalization, Erased value);

// A tensor of any floating-point type as f32. Waits for the device; `what` names the caller in messages.
std::vector<float> download_f32(Context& context, const Tensor& x, const char* what);

}  // namespace dtrain::cli
