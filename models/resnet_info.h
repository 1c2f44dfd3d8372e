// Catalogue defaults shared by ResNets v1 and v2: depths, batch sizes and learning rates.
#pragma once

#include <string>
#include <vector>

#include "dtrain/models/classifier.h"

namespace dtrain::models {

// ImageNet variant (He et al. 2015, table 1).
struct ResNetDepth {
  int layers;
  std::vector<int> blocks;  // per stage
  bool bottleneck;
};
// 18, 34, 50, 101, 152 and 200 layers (200: He et al. 2016).
const std::vector<ResNetDepth>& resnet_depths();
// Blocks per stage of the CIFAR variants: 3, 5, 7, 9 and 18, for 6 * n + 2 layers.
const std::vector<int>& cifar_resnet_blocks();

// Defaults of tf_cnn_benchmarks' ResNets, of TensorFlow's official models and of the CIFAR variants. In the CIFAR
// schedule only the first rate follows `base`; the rates after epochs 82, 123 and 300 are fixed.
ClassifierInfo resnet_info(const std::string& name, int layers);
ClassifierInfo official_resnet_info(const std::string& name, int layers);
ClassifierInfo cifar_resnet_info(const std::string& name);

}  // namespace dtrain::models
