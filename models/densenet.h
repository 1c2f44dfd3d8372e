// DenseNet for CIFAR-10 without bottlenecks and compression (Huang et al. 2016), as in tf_cnn_benchmarks: convolutions
// have biases, and convolutions of transitions a ReLU. Parameters have torchvision's names.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// 40 layers with growth rate 12, 100 layers with growth rates 12 and 24.
std::vector<Entry> densenet_entries();

}  // namespace dtrain::models
