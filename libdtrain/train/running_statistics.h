// RunningStatistics: batch-norm buffers over the micro-steps and ranks of a step.
#pragma once

#include <vector>

#include "dtrain/autograd/parameters.h"

namespace dtrain {

// Micro-steps are treated like ranks: each starts from the running statistics before the step, and the mean of their
// results is kept. Constant buffers are neither reduced nor rescaled: their bits do not change.
class RunningStatistics {
 public:
  // `micro_steps`: per step.
  RunningStatistics(ParameterStore& store, int micro_steps) : store_(store), micro_steps_(micro_steps) {}

  // Call before the forward pass of micro-step `micro_step`, and end() after the last. Asynchronous.
  void begin(int micro_step);
  void end();
  // Ranges to all-reduce: parts of the buffer arena [n] f32, neighbours merged.
  std::vector<Tensor> averaged() const;
  // Divides the all-reduced sums by `ranks`.
  void divide(int ranks);

 private:
  // Range of arena elements, [begin, end).
  struct Stretch {
    int64_t begin = 0, end = 0;
  };
  std::vector<Stretch> stretches() const;

  ParameterStore& store_;
  int micro_steps_;
  Tensor first_, sum_;  // copies of the arena: before the step, and summed over its micro-steps so far
};

}  // namespace dtrain
