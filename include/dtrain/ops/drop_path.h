// Drop path, or stochastic depth (Larsson et al. 2017; scheduled as in Zoph et al. 2018): drops a branch for some
// images.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

struct DropPathOptions {
  float rate = 0;     // drop probability after `steps` steps, 0 <= rate < 1
  int64_t steps = 0;  // linear ramp of the rate from 0; 0: constant rate
};

// x [n, ...] of any floating-point type. In training: zeroes each image with the current rate and scales the others by
// 1 / (1 - rate); identity in eval. The mask depends on (StepScalars::seed, step, call within the step, image). Throws
// Error for invalid options.
Var drop_path(Tape& tape, const Var& x, const DropPathOptions& options);

}  // namespace dtrain
