// The two smallest models of tf_cnn_benchmarks: for checking a set-up, not for accuracy.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// trivial, lenet and small_cnn, each for the data sets that it suits.
std::vector<Entry> small_entries();

}  // namespace dtrain::models
