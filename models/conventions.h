// ModelConventions: in what respects programs build one and the same model in different ways.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/classifier.h"

namespace dtrain::models {

struct ResNetOptions;

// The options of a ResNet by `conventions`.
ResNetOptions by_conventions(ResNetOptions options, const ModelConventions& conventions);

// Stride, padding and epsilon of a ResNet with these options.
ModelConventions conventions_of(const ResNetOptions& options);

// Where the convolutions and the last layer of a model take their first weights from: `layers` are those of a Trace.
// Before the store is allocated.
void initialize(ParameterStore& store, const std::vector<LayerWork>& layers, const ModelConventions& conventions);

// What of them makes another network of the same parameters, for people: ", stride in 3x3, batch norm epsilon 0.0001".
// Empty where nothing does.
std::string describe(const ModelConventions& conventions);
// Back from such a text. Throws Error(Fault::checkpoint) on any other.
ModelConventions conventions_from(const std::string& text);

}  // namespace dtrain::models
