// Weights of classifiers as the backbone of an Ssd300.
#pragma once

#include <string>

#include "models/ssd300.h"

namespace dtrain::models {

// Loads the backbone of the Ssd300 with these options that `store` has; its other layers keep their values. `path` is a
// file of safetensors or NumPy's .npz with the names of torchvision's ResNet-34, which the model resnet34 has, too, or
// the folder of a checkpoint, or a train_dir, whose newest complete checkpoint is taken. The classifier's last stage
// and last layer are left out. Returns the path of the file. Throws Error(fault) where there is no such file, or where
// its other names and shapes are not exactly the backbone's, saying which; Error(Fault::numeric) for a NaN or an
// infinity; Error before allocate().
std::string load_ssd_backbone(ParameterStore& store, const SsdOptions& options, const std::string& path,
                              Fault fault = Fault::data);

}  // namespace dtrain::models
