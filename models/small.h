// Smallest models of tf_cnn_benchmarks, for smoke tests.
#pragma once

#include <vector>

#include "models/entry.h"

namespace dtrain::models {

// trivial, lenet and small_cnn, each for its data sets.
std::vector<Entry> small_entries();

}  // namespace dtrain::models
