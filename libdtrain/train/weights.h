// Weights by torchvision's names, as safetensors: so that what is trained here loads there and the other way round.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"

namespace dtrain {

struct WeightReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> mismatched;  // "fc.weight: file [1000, 2048], model [10, 2048]"
  std::string summary() const;          // one line, and the first few names of each kind that went wrong
};

// Parameters and buffers, f32, convolution weights as OIHW, `num_batches_tracked` scalars as torchvision has them.
void save_weights(const ParameterStore& store, const std::string& path);
// Loads what fits. `num_batches_tracked` entries are expected and ignored. Throws Error(Fault::data) on a malformed
// file.
WeightReport load_weights(ParameterStore& store, const std::string& path);

}  // namespace dtrain
