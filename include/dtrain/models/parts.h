// Parts of a model by name, for fine-tuning: freezing a part, and the head that depends on the classes.
#pragma once

#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"

namespace dtrain::models {

// Names of the largest parts: "stem", what precedes layer1 of a ResNet; the first components of its parameters' names,
// such as "layer1"; and, of a detector, those of its backbone before its own, such as "rpn".
std::vector<std::string> part_names(const ParameterStore& store);

// Freezes a part, see ParameterStore::freeze(): one of part_names(), or a longer path such as "layer1.0". False if
// there is no such part.
bool freeze_part(ParameterStore& store, const std::string& part);

// The head: of a classifier the last linear layer, of a Detector the box and mask predictors, of SSD300 the heads of
// classes and boxes. Throws Error for a model without them.
NameFilter head_of(const ParameterStore& store);

}  // namespace dtrain::models
