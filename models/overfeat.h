// OverFeat's fast form (Sermanet et al. 2013), as tf_cnn_benchmarks has it.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

std::vector<Entry> overfeat_entries();

}  // namespace dtrain::models
