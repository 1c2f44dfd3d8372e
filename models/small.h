// The two smallest models of tf_cnn_benchmarks: for checking a set-up, not for accuracy.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// trivial for both data sets, and lenet.
std::vector<Entry> small_entries();

}  // namespace dtrain::models
