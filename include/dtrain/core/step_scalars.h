// StepScalars: scalars of a step in device memory: inputs set by the host, and state carried by updates.
#pragma once

#include <cstdint>

namespace dtrain {

// Set by the host before each step.
struct StepInputs {
  float learning_rate = 0;
  float gradient_scale = 1;  // factor of the summed gradient besides 1 / loss_scale: 1 / (ranks x micro-steps)
  uint64_t step = 0;         // steps done before this one, skipped updates included
  uint64_t seed = 0;         // for dropout and other sampling
  float request = 0;         // this rank's request, e.g. to stop: all-reduced with the step's metrics
};

// Updated on the device. Set by the host before the first step, read for checkpoints.
struct StepState {
  float loss_scale = 1;      // factor of the loss gradient; the update divides by it
  int32_t double_after = 0;  // dynamic loss scaling: doubles after this many good updates; 0: static
  int32_t good_steps = 0;    // updates since the loss scale changed
  int32_t finite = 1;    // sticky: cleared by a non-finite gradient that a lower scale cannot fix; stops all updates
  uint64_t skipped = 0;  // updates skipped for a non-finite gradient
  bool operator==(const StepState&) const = default;
};

// In device memory, so that kernels read them there and a CUDA graph can be launched with new values.
struct StepScalars : StepInputs, StepState {};

}  // namespace dtrain
