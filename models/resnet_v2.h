// ResNet v2 (He et al. 2016): pre-activation blocks of batch norm, ReLU and convolution; nothing follows the addition.
// Parameters have the names of v1; `bn` is the batch norm after the last block.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// 50, 101 and 152 layers for ImageNet and 20, 32, 44, 56 and 110 layers for CIFAR-10, as in tf_cnn_benchmarks; v2 of
// TensorFlow's official models.
std::vector<Entry> resnet_v2_entries();

}  // namespace dtrain::models
