// Files of a classifier's weights: safetensors or NumPy's .npz by the model's own names, which are torchvision's where
// that has the model, or by timm's.
#pragma once

#include <string>

#include "models/classifier.h"
#include "models/detection/weight_files.h"

namespace dtrain::models {

// As many classes as the file's last layer has. `store` has the model's parameters and may lack their values. Throws
// Error(fault) naming the layer where the file has none such.
int64_t classes_of_weights(const ParameterStore& store, const ClassifierInfo& info, const std::string& path,
                           Fault fault = Fault::data);

// Loads what fits by name and shape, and throws, as load_weights() does. A convolution over a whole image, as timm has
// in place of some linear layers, is one.
LoadedWeights load_classifier(ParameterStore& store, const ClassifierInfo& info, const std::string& path,
                              Fault fault = Fault::data);

}  // namespace dtrain::models
