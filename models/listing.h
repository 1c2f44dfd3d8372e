// Layer table of a model.
#pragma once

#include <string>
#include <vector>

#include "dtrain/models/classifier.h"

namespace dtrain::models {

// Returns a heading, a line per op of the forward pass of one image in execution order, auxiliary heads included, and
// totals over `store` and the model. Columns: path of the layer, op, input and output shapes, parameters,
// multiply-adds. Runs one forward pass in inference mode; the model is not changed.
std::vector<std::string> list_layers(const Classifier& model, ParameterStore& store);

}  // namespace dtrain::models
