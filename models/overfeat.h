// OverFeat, fast variant (Sermanet et al. 2013), as in tf_cnn_benchmarks.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

std::vector<Entry> overfeat_entries();

}  // namespace dtrain::models
