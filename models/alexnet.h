// AlexNet for ImageNet, single-column (Krizhevsky 2014), and the smaller variant for CIFAR-10 of TensorFlow's tutorial;
// both as in tf_cnn_benchmarks. The first has torchvision's parameter names, but a wider fourth convolution.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

std::vector<Entry> alexnet_entries();

}  // namespace dtrain::models
