#include "libdtrain/ops/conv_bn_act.h"

namespace dtrain {

// Two records, each of which keeps only what its own backward reads: the convolution's output is freed before its
// gradients are computed, and the mask of relu follows from it, so that y need not be kept where there is no residual.
Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation, const Var* residual) {
  ChannelSums sums;
  const float worth = tape.training() && !bn.frozen && !synchronised_by(bn)
                          ? batch_norm_sums_worth(tape.context(), conv2d_shape(x.shape(), w.shape(), conv),
                                                  x.value.dtype(), activation, residual != nullptr)
                          : 0;
  const Var y = conv2d_with_sums(tape, x, w, conv, worth, sums);
  return batch_norm(tape, y, gamma, beta, state, bn, activation, residual, sums);
}

}  // namespace dtrain
