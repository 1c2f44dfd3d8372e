// A classifier as an ONNX model: what its forward pass makes of one image in eval mode, written down op by op.
#pragma once

#include <string>

#include "libdtrain/ops/pointwise.h"
#include "models/classifier.h"

namespace dtrain::models {

// Writes a graph whose input is `images` [n, 3, size, size], RGB from 0 to 1, for any n, and whose output is `logits`
// [n, classes]. It does first what `pixels` says, whose numbers are for 0 to 255. Dropout and drop path are left out.
// `store` holds the model's values, in f32 on the CPU. Throws Error(Fault::config) naming an op or a parameter that
// cannot be exported, such as those of an auxiliary head, and as OnnxGraph::write does.
void export_onnx(const ParameterStore& store, const Classifier& model, const PixelNormalization& pixels,
                 const std::string& path);

}  // namespace dtrain::models
