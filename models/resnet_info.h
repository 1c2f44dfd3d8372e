// What ResNets of all kinds have in common: depths, batches and learning rates.
#pragma once

#include <string>
#include <vector>

#include "models/classifier.h"

namespace dtrain::models {

// The form for ImageNet (He et al. 2015, table 1).
struct ResNetDepth {
  int layers;
  std::vector<int> blocks;  // per stage
  bool bottleneck;
};
// 18, 34, 50, 101, 152 and 200 layers (200: He et al. 2016).
const std::vector<ResNetDepth>& resnet_depths();
// The blocks in each of the three stages of the forms for CIFAR: 3, 5, 7, 9 and 18, of 6 * n + 2 layers.
const std::vector<int>& cifar_resnet_blocks();

// The defaults of tf_cnn_benchmarks' own ResNets, of TensorFlow's official models, and of the forms for CIFAR, where
// only the first rate of the schedule follows `base`: after epochs 82, 123 and 300 come fixed ones.
ClassifierInfo resnet_info(const std::string& name, int layers);
ClassifierInfo official_resnet_info(const std::string& name, int layers);
ClassifierInfo cifar_resnet_info(const std::string& name);

}  // namespace dtrain::models
