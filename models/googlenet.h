// GoogLeNet (Szegedy et al. 2014) as in tf_cnn_benchmarks: biases instead of batch norms, 5x5 kernels, no auxiliary
// heads, no dropout. Parameter names follow torchvision's variant with batch norms.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

std::vector<Entry> googlenet_entries();

}  // namespace dtrain::models
