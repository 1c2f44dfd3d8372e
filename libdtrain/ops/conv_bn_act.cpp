#include "dtrain/ops/conv_bn_act.h"

#include <limits>

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/inferred_conv.h"
#include "dtrain/ops/relu6.h"
#include "libdtrain/ops/conv_bn_fusion.h"

namespace dtrain {
namespace {

// The statistics are those of one rank's own batch.
bool has_batch_statistics(const Tape& tape, const BatchNormOptions& bn) {
  return tape.training() && !bn.frozen && !synchronised_by(bn);
}

bool takes_on_load(const Tape& tape, const Normalized& in, const ConvBnActLayer& layer, const ConvBnActLayer& next) {
  if (layer.activation != Activation::relu || !has_batch_statistics(tape, layer.bn)) return false;
  const ConvBnActPair pair{in.y.shape(), in.y.value.dtype(), layer.w.shape(),  next.w.shape(),
                           layer.conv,   next.conv,          in.load.defined()};
  return DT_DISPATCH(tape.context(), takes_on_load)(pair);
}

// Two records for each layer, each of which keeps only what its own backward reads: the convolution's output is freed
// before its gradients are computed, and the mask of relu follows from it, so that y need not be kept where there is no
// residual.
Normalized one_layer(Tape& tape, const Normalized& in, const ConvBnActLayer& layer, const Var* residual,
                     bool takes_residual = false) {
  const bool inferred = is_inferred(tape, in.y, layer.conv);
  // Convolutions that infer and a GPU's batch norms apply no activation but relu.
  if (layer.activation == Activation::relu6 && (inferred || !tape.context().is_cpu())) {
    ConvBnActLayer linear = layer;
    linear.activation = Activation::none;
    return {relu6(tape, one_layer(tape, in, linear, residual, takes_residual).y)};
  }
  if (inferred)
    return {inferred_conv(tape, in.y, layer.w, layer.conv,
                          {.norm = InferredNorm{layer.gamma.value, layer.beta.value, layer.state, layer.bn.epsilon},
                           .activation = layer.activation,
                           .residual = residual,
                           .takes_residual = takes_residual})};
  Context& context = tape.context();
  float worth = 0;
  if (has_batch_statistics(tape, layer.bn))
    worth = DT_DISPATCH(context, batch_norm_sums_worth)(conv2d_shape(in.y.shape(), layer.w.shape(), layer.conv),
                                                        in.y.value.dtype(), layer.activation, residual != nullptr);
  const auto [y, sums, deferred] = conv2d_with_statistics(tape, in, layer.w, layer.conv, worth);
  return batch_norm_with_statistics(tape, y, layer.gamma, layer.beta, layer.state, layer.bn, layer.activation, residual,
                                    sums, deferred);
}

// As one_layer, its batch norm left to the next one.
Normalized layer_on_load(Tape& tape, const Normalized& in, const ConvBnActLayer& layer) {
  constexpr float kAnything = std::numeric_limits<float>::infinity();
  const auto [y, sums, deferred] = conv2d_with_statistics(tape, in, layer.w, layer.conv, kAnything);
  return batch_norm_on_load(tape, y, layer.gamma, layer.beta, layer.state, layer.bn, sums);
}

Var chain(Tape& tape, Normalized in, std::span<const ConvBnActLayer> layers, const Var* residual, bool takes_residual) {
  DT_CHECK(!layers.empty(), "conv_bn_act: a chain without layers");
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    in = takes_on_load(tape, in, layers[i], layers[i + 1]) ? layer_on_load(tape, in, layers[i])
                                                           : one_layer(tape, in, layers[i], nullptr);
  return one_layer(tape, in, layers.back(), residual, takes_residual).y;
}

}  // namespace

Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation, const Var* residual) {
  return one_layer(tape, {x}, {w, conv, gamma, beta, state, bn, activation}, residual).y;
}

Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnActLayer> layers, const Var* residual) {
  return chain(tape, {x}, layers, residual, false);
}

Var conv_bn_act(Tape& tape, Var x, std::span<const ConvBnActLayer> layers, Var&& residual) {
  const Var taken = std::move(residual);
  return chain(tape, {std::move(x)}, layers, &taken, true);
}

}  // namespace dtrain
