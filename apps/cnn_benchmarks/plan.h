// How long a run is and what happens at which step: known once the sizes of the data are.
#pragma once

#include <cstdint>
#include <functional>

#include "apps/cnn_benchmarks/config.h"

namespace dtrain::cnn_benchmarks {

// Images of the two halves of a data set.
struct DatasetSizes {
  uint64_t training = 0, validation = 0;
};

// Steps are updates and count from the first one, warm-up included.
struct Plan {
  int64_t num_batches = 0;                             // timed steps, or evaluation batches with --eval
  double num_epochs = 0;                               // that they make
  uint64_t total_steps = 0;                            // warm-up + timed
  int64_t eval_batches = 0;                            // in one evaluation
  std::function<bool(uint64_t step)> evaluates_after;  // training pauses for an evaluation
  Schedule schedule;
};

// Throws Error for a flag whose value does not fit the data.
Plan make_plan(const Config& config, const DatasetSizes& sizes);

}  // namespace dtrain::cnn_benchmarks
