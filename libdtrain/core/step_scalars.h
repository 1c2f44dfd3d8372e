// StepScalars: the numbers that a step reads in device memory, those that the host sets and those that updates carry
// on.
#pragma once

#include <cstdint>

namespace dtrain {

// What the host sets before a step.
struct StepInputs {
  float learning_rate = 0;
  float gradient_scale = 1;  // multiplies the summed gradient, besides 1 / loss_scale: 1 / (ranks x micro-steps)
  uint64_t step = 0;         // steps done before this one, those whose update was skipped included
  uint64_t seed = 0;         // for dropout and the like
  float request = 0;         // from this rank to all, e.g. to stop: summed over them with the step's metrics
};

// What the update carries from step to step. The host sets it before the first and reads it for a checkpoint.
struct StepState {
  float loss_scale = 1;      // where the gradient of the loss starts; the update takes it out again
  int32_t double_after = 0;  // dynamic scale: it doubles after so many updates in a row; 0: it is static
  int32_t good_steps = 0;    // updates since the loss scale last changed
  int32_t finite = 1;        // sticky: once a gradient that halving the scale cannot mend clears it, nothing is updated
  uint64_t skipped = 0;      // updates left out because, at its loss scale, a gradient was not finite
  bool operator==(const StepState&) const = default;
};

// Both live in device memory, so that kernels read them there and a captured step can be replayed with new values.
struct StepScalars : StepInputs, StepState {};

}  // namespace dtrain
