// ModelConventions: applying, describing and parsing them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrain/models/classifier.h"

namespace dtrain::models {

struct ResNetOptions;

// `options` with these conventions applied.
ResNetOptions by_conventions(ResNetOptions options, const ModelConventions& conventions);

// Stride, padding and epsilon of a ResNet with these options.
ModelConventions conventions_of(const ResNetOptions& options);

// Sets the initialisers of the convolutions and of the last layer; `layers` come from a Trace. Call it before
// store.allocate().
void initialize(ParameterStore& store, const std::vector<LayerWork>& layers, const ModelConventions& conventions);

// The conventions that change the function of the network, as text: ", stride in 3x3, batch norm epsilon 0.0001". Empty
// if none does.
std::string describe(const ModelConventions& conventions);
// Parses this text. Throws Error(Fault::checkpoint) if it is invalid.
ModelConventions conventions_from(const std::string& text);

}  // namespace dtrain::models
