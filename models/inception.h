// Inception-v3 (Szegedy et al. 2015) and Inception-v4 (Szegedy et al. 2016), as tf_cnn_benchmarks has them: average
// pools leave the padding out, the last block of v3 has a max-pool, and batch norms shift without scaling. v3 has
// torchvision's parameter names and loads its weights, whose batch norms do scale; torchvision's other pools then give
// other logits. v4 has names in the manner of the `timm` library.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// inception3, with the auxiliary head of ClassifierOptions::auxiliary_head, and inception4.
std::vector<Entry> inception_entries();

}  // namespace dtrain::models
