// DenseNet for CIFAR-10 without bottlenecks and compression (Huang et al. 2016), as tf_cnn_benchmarks has it: its
// convolutions have biases, and those of transitions a ReLU. The parameters have torchvision's names.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// Of 40 and 100 layers with growth rates of 12, and of 100 with one of 24.
std::vector<Entry> densenet_entries();

}  // namespace dtrain::models
