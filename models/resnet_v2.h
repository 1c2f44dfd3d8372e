// ResNet v2 (He et al. 2016): blocks of batch norm, ReLU and convolution, in this order, whose sum nothing follows. The
// parameters are named as those of v1 are; `bn` is the batch norm behind the last block.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// tf_cnn_benchmarks' own of 50, 101 and 152 layers for ImageNet, and of 20, 32, 44, 56 and 110 layers for CIFAR-10; v2
// of TensorFlow's official models.
std::vector<Entry> resnet_v2_entries();

}  // namespace dtrain::models
