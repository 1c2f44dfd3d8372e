// RunningStatistics: the buffers of a model over the micro-steps and ranks of a step.
#pragma once

#include <vector>

#include "libdtrain/autograd/parameters.h"

namespace dtrain {

// Micro-steps stand for ranks that are not there: as those, each starts from the running statistics that the step
// found, and the mean of their results is kept. Buffers that are constant() are neither summed nor rescaled: they
// keep their bits.
class RunningStatistics {
 public:
  // `micro_steps`: those of a step.
  RunningStatistics(ParameterStore& store, int micro_steps) : store_(store), micro_steps_(micro_steps) {}

  // Before the forward pass of micro-step `micro_step`, and after that of the last. Queued; nothing is waited for.
  void begin(int micro_step);
  void end();
  // What ranks sum: stretches of the buffer arena [n] f32, neighbours in one.
  std::vector<Tensor> averaged() const;
  // Makes means of what has been summed over `ranks`.
  void divide(int ranks);

 private:
  // Elements of the arena, [begin, end).
  struct Stretch {
    int64_t begin = 0, end = 0;
  };
  std::vector<Stretch> stretches() const;

  ParameterStore& store_;
  int micro_steps_;
  Tensor first_, sum_;  // copies of the arena: before the step, and summed over its micro-steps so far
};

}  // namespace dtrain
