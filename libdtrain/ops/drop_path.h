// Drop path (Larsson et al. 2017; scheduled as in Zoph et al. 2018): leaves out what a branch makes of some images.
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

struct DropPathOptions {
  float rate = 0;     // 0 <= rate < 1, of images that are dropped once `steps` steps are done
  int64_t steps = 0;  // over which the rate grows from 0, linearly; 0: it is what it is from the first step on
};

// x [n, ...] of any floating-point type: zeroes each image with the probability of this step and scales the others by
// 1 / (1 - it), in training; the identity in eval. Which is dropped is a function of (StepScalars::seed, step, call
// within the step, image). Throws Error where the options are others.
Var drop_path(Tape& tape, const Var& x, const DropPathOptions& options);

namespace cpu {
// The same function forwards and backwards: y = x * mask / (1 - rate), added where asked.
void drop_path(Context&, const Tensor& x, const DropPathOptions&, uint64_t stream, const Tensor& y, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::drop_path) drop_path;
}  // namespace cuda

}  // namespace dtrain
