// Inception-v3 (Szegedy et al. 2015) and Inception-v4 (Szegedy et al. 2016), as in tf_cnn_benchmarks: average pools
// exclude padding, the last block of v3 has a max-pool, and batch norms have no gamma. v3 has torchvision's parameter
// names and loads its weights, gammas included; logits differ because torchvision's pools differ. v4 follows timm's
// naming style.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// inception3, with an optional auxiliary head (ClassifierOptions::auxiliary_head), and inception4.
std::vector<Entry> inception_entries();

}  // namespace dtrain::models
