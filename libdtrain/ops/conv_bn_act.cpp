#include "libdtrain/ops/conv_bn_act.h"

#include <limits>

#include "libdtrain/core/dispatch.h"

namespace dtrain {
namespace {

// Of one rank's own batch.
bool has_batch_statistics(const Tape& tape, const BatchNormOptions& bn) {
  return tape.training() && !bn.frozen && !synchronised_by(bn);
}

bool takes_on_load(const Tape& tape, const Var& x, const OnLoad& load, const ConvBnActLayer& layer,
                   const ConvBnActLayer& next) {
  if (layer.activation != Activation::relu || !has_batch_statistics(tape, layer.bn)) return false;
  bool takes = false;
  DT_DISPATCH(tape.context(), takes_on_load,
              {x.shape(), x.value.dtype(), layer.w.shape(), next.w.shape(), layer.conv, next.conv, load.defined()},
              takes);
  return takes;
}

// Two records for each layer, of which each keeps only what its own backward reads: the convolution's output is freed
// before its gradients are computed, and the mask of relu follows from it, so that y need not be kept where there is no
// residual.
Var one_layer(Tape& tape, const Var& x, const OnLoad& load, const ConvBnActLayer& layer, const Var* residual) {
  ChannelSums sums;
  const float worth = has_batch_statistics(tape, layer.bn)
                          ? batch_norm_sums_worth(tape.context(), conv2d_shape(x.shape(), layer.w.shape(), layer.conv),
                                                  x.value.dtype(), layer.activation, residual != nullptr)
                          : 0;
  const Var y = conv2d_with_sums(tape, x, load, layer.w, layer.conv, worth, sums);
  return batch_norm(tape, y, layer.gamma, layer.beta, layer.state, layer.bn, layer.activation, residual, sums);
}

}  // namespace

Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation, const Var* residual) {
  return one_layer(tape, x, {}, {w, conv, gamma, beta, state, bn, activation}, residual);
}

Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnActLayer> layers, const Var* residual) {
  Var in = x;
  OnLoad load;  // of `in`
  for (size_t i = 0; i < layers.size(); ++i) {
    const ConvBnActLayer& layer = layers[i];
    const bool last = i + 1 == layers.size();
    if (last || !takes_on_load(tape, in, load, layer, layers[i + 1])) {
      in = one_layer(tape, in, load, layer, last ? residual : nullptr);
      load = {};
      continue;
    }
    ChannelSums sums;
    const Var y = conv2d_with_sums(tape, in, load, layer.w, layer.conv, std::numeric_limits<float>::infinity(), sums);
    in = batch_norm_on_load(tape, y, layer.gamma, layer.beta, layer.state, layer.bn, sums, load);
  }
  return in;
}

}  // namespace dtrain
