// A listing of a model for people.
#pragma once

#include <string>
#include <vector>

#include "models/classifier.h"

namespace dtrain::models {

// A heading, a line for each op of a forward pass of one image in the order in which they run, auxiliary heads included
// (the layer's path, the op, the shapes of what it is given and gives, its parameters, its multiply-adds), and totals,
// which are those of `store` and of the model. Runs such a pass, in inference, which changes nothing.
std::vector<std::string> list_layers(const Classifier& model, ParameterStore& store);

}  // namespace dtrain::models
