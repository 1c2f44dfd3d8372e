#include "libdtrain/ops/conv_bn_act.h"

#include <limits>

#include "libdtrain/core/dispatch.h"

namespace dtrain {
namespace {

// What a layer of a chain reads.
struct Link {
  Var x;
  OnLoad load{};
  std::shared_ptr<BatchNormSaved> before{};  // of the layer in front, where its activation is nobody else's
};

// Of one rank's own batch.
bool has_batch_statistics(const Tape& tape, const BatchNormOptions& bn) {
  return tape.training() && !bn.frozen && !synchronised_by(bn);
}

bool takes_on_load(const Tape& tape, const Link& in, const ConvBnActLayer& layer, const ConvBnActLayer& next) {
  if (layer.activation != Activation::relu || !has_batch_statistics(tape, layer.bn)) return false;
  const ConvBnActPair pair{in.x.shape(), in.x.value.dtype(), layer.w.shape(),  next.w.shape(),
                           layer.conv,   next.conv,          in.load.defined()};
  return DT_DISPATCH(tape.context(), takes_on_load)(pair);
}

// Two records for each layer, of which each keeps only what its own backward reads: the convolution's output is freed
// before its gradients are computed, and the mask of relu follows from it, so that y need not be kept where there is no
// residual.
Var one_layer(Tape& tape, const Link& in, const ConvBnActLayer& layer, const Var* residual,
              std::shared_ptr<BatchNormSaved>* saved = nullptr) {
  ChannelSums sums;
  const Shape& x = in.x.shape();
  const float worth = has_batch_statistics(tape, layer.bn)
                          ? batch_norm_sums_worth(tape.context(), conv2d_shape(x, layer.w.shape(), layer.conv),
                                                  in.x.value.dtype(), layer.activation, residual != nullptr)
                          : 0;
  const Var y = conv2d_with_sums(tape, in.x, in.load, layer.w, layer.conv, worth, sums, in.before);
  return batch_norm(tape, y, layer.gamma, layer.beta, layer.state, layer.bn, layer.activation, residual, sums, saved);
}

// As one_layer, its batch norm left to the next one.
Link layer_on_load(Tape& tape, const Link& in, const ConvBnActLayer& layer) {
  constexpr float kAnything = std::numeric_limits<float>::infinity();
  ChannelSums sums;
  Link out;
  const Var y = conv2d_with_sums(tape, in.x, in.load, layer.w, layer.conv, kAnything, sums, in.before);
  out.x = batch_norm_on_load(tape, y, layer.gamma, layer.beta, layer.state, layer.bn, sums, out.load, &out.before);
  return out;
}

}  // namespace

Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation, const Var* residual) {
  return one_layer(tape, {x}, {w, conv, gamma, beta, state, bn, activation}, residual);
}

Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnActLayer> layers, const Var* residual) {
  DT_CHECK(!layers.empty(), "conv_bn_act: a chain without layers");
  Link in{x};
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    if (takes_on_load(tape, in, layers[i], layers[i + 1])) {
      in = layer_on_load(tape, in, layers[i]);
      continue;
    }
    const bool gated = layers[i].activation == Activation::relu && has_batch_statistics(tape, layers[i].bn);
    Link out;
    out.x = one_layer(tape, in, layers[i], nullptr, gated ? &out.before : nullptr);
    in = out;
  }
  return one_layer(tape, in, layers.back(), residual);
}

}  // namespace dtrain
