// Training schedule: number of steps, evaluations and learning rates, once the data set sizes are known.
#pragma once

#include <cstdint>
#include <functional>

#include "apps/cnn_benchmarks/settings.h"

namespace dtrain::cnn_benchmarks {

// Numbers of training and validation images.
struct DatasetSizes {
  uint64_t training = 0, validation = 0;
};

// Steps are updates, counted from the first, warm-up included.
struct TrainingSchedule {
  int64_t num_batches = 0;                             // timed steps, or evaluation batches with --eval
  double num_epochs = 0;                               // of these steps
  uint64_t total_steps = 0;                            // warm-up + timed
  int64_t eval_batches = 0;                            // in one evaluation
  std::function<bool(uint64_t step)> evaluates_after;  // whether an evaluation follows the step
  Schedule learning_rate;
};

// Throws Error for a flag value that does not fit the data.
TrainingSchedule make_schedule(const Settings& settings, const DatasetSizes& sizes);

}  // namespace dtrain::cnn_benchmarks
