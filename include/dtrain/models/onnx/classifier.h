// Export of a classifier as an ONNX model by recording its forward pass in eval mode.
#pragma once

#include <string>

#include "dtrain/models/classifier.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain::models {

// Writes a graph from `images` [n, 3, size, size], RGB in [0, 1], for any n, to `logits` [n, classes]. `pixels` is the
// normalisation for pixels in [0, 255]; it becomes a part of the graph. Dropout and drop path are omitted. `store`
// holds values in f32 on the CPU. Throws Error(Fault::config) with the name of an op or a parameter that cannot be
// exported, such as an auxiliary head's, and as OnnxGraph::write does.
void export_onnx(const ParameterStore& store, const Classifier& model, const PixelNormalization& pixels,
                 const std::string& path);

}  // namespace dtrain::models
