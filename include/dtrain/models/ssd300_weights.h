// Loading of classifier weights into the backbone of an Ssd300.
#pragma once

#include <string>

#include "dtrain/models/ssd300.h"

namespace dtrain::models {

// Loads the backbone of the Ssd300 in `store` with these options; other layers keep their values. `path` is a
// safetensors or NumPy .npz file with the names of torchvision's ResNet-34 (also those of the model resnet34), the
// folder of a checkpoint, or a train_dir, whose newest complete checkpoint is used. The classifier's last stage and
// last layer are ignored. Returns the path of the file. Throws Error(fault) if there is no such file or its other names
// and shapes do not match the backbone exactly; Error(Fault::numeric) for NaN or infinity; Error before allocate().
std::string load_ssd_backbone(ParameterStore& store, const SsdOptions& options, const std::string& path,
                              Fault fault = Fault::data);

}  // namespace dtrain::models
