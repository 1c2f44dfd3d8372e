#include "libdtrain/ops/conv_bn_act.h"

namespace dtrain {

// Two records, each of which keeps only what its own backward reads: the convolution's output is freed before its
// gradients are computed, and the mask of relu follows from it, so that y need not be kept where there is no residual.
Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation, const Var* residual) {
  return batch_norm(tape, conv2d(tape, x, w, conv), gamma, beta, state, bn, activation, residual);
}

}  // namespace dtrain
