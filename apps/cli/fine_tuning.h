// Application of --freeze and --head_learning_rate_factor, and notices about fine-tuning.
#pragma once

#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/train/weights.h"

namespace dtrain::cli {

// Freezes the parts, and multiplies the learning rate of the head. Returns a notice, empty if nothing is frozen. Throws
// Error naming the flag and the model's parts for an unknown part, and if no parameter is left to train.
std::string fine_tune(ParameterStore& store, const std::vector<std::string>& freeze, double head_factor);

// "2 tensors keep their initial values: fc.weight (file [1000, 512], model [5, 512]), fc.bias (...)": those
// that were not loaded from a file of weights. Empty if there are none.
std::string initial_values(const WeightReport& report);

}  // namespace dtrain::cli
