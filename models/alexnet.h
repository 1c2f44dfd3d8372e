// AlexNet for ImageNet in one column (Krizhevsky 2014), and the smaller form for CIFAR-10 of TensorFlow's tutorial, as
// tf_cnn_benchmarks has them. The first has torchvision's parameter names; its fourth convolution is wider.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

std::vector<Entry> alexnet_entries();

}  // namespace dtrain::models
