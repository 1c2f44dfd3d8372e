// GoogLeNet (Szegedy et al. 2014) as tf_cnn_benchmarks has it: biases in place of batch norms, 5x5 kernels, neither
// auxiliary heads nor dropout. The parameters are named as torchvision names those of its form with batch norms.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

std::vector<Entry> googlenet_entries();

}  // namespace dtrain::models
