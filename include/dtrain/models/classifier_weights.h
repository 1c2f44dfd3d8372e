// Loading of classifier weights from safetensors or NumPy .npz files, with the model's parameter names (torchvision's
// where torchvision has the model) or with timm's.
#pragma once

#include <string>

#include "dtrain/models/classifier.h"
#include "dtrain/models/detection/weight_files.h"

namespace dtrain::models {

// Number of classes of the last layer in the file. `store` has the model's parameters, possibly not yet allocated.
// Throws Error(fault) with the layer's name if the file lacks it, or has it for another number of inputs.
int64_t classes_of_weights(const ParameterStore& store, const ClassifierInfo& info, const std::string& path,
                           Fault fault = Fault::data);

// Loads the weights that match by name and shape, as load_weights() does and with its errors. Also accepts
// timm's convolutions over the whole image in place of linear layers.
LoadedWeights load_classifier(ParameterStore& store, const ClassifierInfo& info, const std::string& path,
                              Fault fault = Fault::data);

// Names and shapes of the arrays of a classifier's file in `program`, "torchvision" or "timm". Where timm has no names
// of its own for the model, both are the same.
Renaming rename_classifier(const ParameterStore& store, const ClassifierInfo& info, const ArrayFile& file,
                           const std::string& program);

}  // namespace dtrain::models
