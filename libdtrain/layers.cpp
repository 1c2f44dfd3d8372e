#include "dtrain/layers.h"

#include <cmath>

#include "dtrain/ops/bn_relu_max_pool.h"
#include "dtrain/ops/conv_transpose2d.h"
#include "dtrain/ops/group_norm.h"
#include "dtrain/ops/matmul.h"

namespace dtrain {
namespace {

// He et al. 2015 for ReLU, fan-out: torchvision's choice for ResNet.
Init he_fan_out(int64_t out, Size2 kernel) {
  return Init::normal(std::sqrt(2.0f / static_cast<float>(out * kernel.h * kernel.w)));
}

// Per-channel parameter, initially `value`, without weight decay: biases, scale and shift of norms.
Parameter* per_channel(ParameterStore& store, const std::string& name, int64_t channels, float value) {
  return &store.add(name, {channels}, Init::constant(value), {.decay = false});
}

}  // namespace

Conv2d::Conv2d(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Size2 kernel, const Options& o)
    : options(o.conv) {
  DT_CHECK(o.conv.groups >= 1 && in % o.conv.groups == 0 && out % o.conv.groups == 0, path, ": ", in, " -> ", out,
           " channels do not divide into ", o.conv.groups, " groups");
  weight = &store.add(path + ".weight", {out, kernel.h, kernel.w, in / o.conv.groups},
                      o.init.is_set() ? o.init : he_fan_out(out, kernel), {.layout = Layout::krsc});
  if (o.bias) bias = per_channel(store, path + ".bias", out, 0);
}

Var Conv2d::operator()(Tape& tape, const Var& x) const {
  const Var w = tape.leaf(*weight);
  if (!bias) return conv2d(tape, x, w, options);
  const Var b = tape.leaf(*bias);
  return conv2d(tape, x, w, &b, options);
}

ConvTranspose2d::ConvTranspose2d(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Size2 kernel,
                                 const Options& o)
    : weight(&store.add(path + ".weight", {in, kernel.h, kernel.w, out},
                        o.init.is_set() ? o.init : he_fan_out(in, kernel), {.layout = Layout::krsc})),
      options(o.conv) {
  if (o.bias) bias = per_channel(store, path + ".bias", out, 0);
}

Var ConvTranspose2d::operator()(Tape& tape, const Var& x) const {
  const Var w = tape.leaf(*weight);
  DT_CHECK(
      w.shape() == weight->shape, weight->name, ": its filters ", weight->shape, " are read as ", w.shape(),
      ", because those of convolutions over images have ComputeOptions::image_channels; expected another number of "
      "channels than 3");
  if (!bias) return conv_transpose2d(tape, x, w, nullptr, options);
  const Var b = tape.leaf(*bias);
  return conv_transpose2d(tape, x, w, &b, options);
}

BatchNorm::BatchNorm(ParameterStore& store, const std::string& path, int64_t channels, const BatchNormOptions& o,
                     float initial_gamma)
    : gamma(per_channel(store, path + ".weight", channels, initial_gamma)),
      beta(per_channel(store, path + ".bias", channels, 0)),
      running_mean(&store.add_buffer(path + ".running_mean", {channels}, 0, o.frozen)),
      running_var(&store.add_buffer(path + ".running_var", {channels}, 1, o.frozen)),
      options(o) {
  options.frozen = false;  // the buffers tell, and may be unfrozen
}

BatchNormOptions BatchNorm::current_options() const {
  DT_CHECK(running_mean->constant() == running_var->constant(), "batch norm: of ", running_mean->name, " and ",
           running_var->name, " one is frozen, expected both or none");
  BatchNormOptions current = options;
  current.frozen |= running_mean->constant();
  return current;
}

Var BatchNorm::operator()(Tape& tape, const Var& x, Activation activation, const Var* residual) const {
  return batch_norm(tape, x, tape.leaf(*gamma), tape.leaf(*beta), state(), current_options(), activation, residual);
}

Var BatchNorm::relu_max_pool(Tape& tape, const Var& x, const PoolOptions& pool) const {
  return bn_relu_max_pool(tape, x, tape.leaf(*gamma), tape.leaf(*beta), state(), current_options(), pool);
}

GroupNorm::GroupNorm(ParameterStore& store, const std::string& path, int64_t channels, int number, float e,
                     float initial_gamma)
    : gamma(per_channel(store, path + ".weight", channels, initial_gamma)),
      beta(per_channel(store, path + ".bias", channels, 0)),
      groups(number),
      epsilon(e) {}

Var GroupNorm::operator()(Tape& tape, const Var& x) const {
  return group_norm(tape, x, tape.leaf(*gamma), tape.leaf(*beta), groups, epsilon);
}

LayerNorm::LayerNorm(ParameterStore& store, const std::string& path, int64_t channels, float e)
    : gamma(per_channel(store, path + ".weight", channels, 1)),
      beta(per_channel(store, path + ".bias", channels, 0)),
      epsilon(e) {}

Var LayerNorm::operator()(Tape& tape, const Var& x) const {
  return layer_norm(tape, x, tape.leaf(*gamma), tape.leaf(*beta), epsilon);
}

Var ConvBnAct::operator()(Tape& tape, const Var& x, const Var* residual) const {
  return conv_bn_act(tape, x, tape.leaf(*conv.weight), conv.options, tape.leaf(*bn.gamma), tape.leaf(*bn.beta),
                     bn.state(), bn.current_options(), activation, residual);
}

namespace {

std::vector<ConvBnActLayer> on_tape(Tape& tape, std::span<const ConvBnAct> layers) {
  std::vector<ConvBnActLayer> chain;
  for (const ConvBnAct& layer : layers)
    chain.push_back({tape.leaf(*layer.conv.weight), layer.conv.options, tape.leaf(*layer.bn.gamma),
                     tape.leaf(*layer.bn.beta), layer.bn.state(), layer.bn.current_options(), layer.activation});
  return chain;
}

}  // namespace

Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnAct> layers, const Var* residual) {
  return conv_bn_act(tape, x, on_tape(tape, layers), residual);
}
Var conv_bn_act(Tape& tape, Var x, std::span<const ConvBnAct> layers, Var&& residual) {
  return conv_bn_act(tape, std::move(x), on_tape(tape, layers), std::move(residual));
}

Linear::Linear(ParameterStore& store, const std::string& path, int64_t in, int64_t out, Init weight_init,
               int64_t image_channels)
    : weight(&store.add(path + ".weight", {out, in}, weight_init,
                        {.layout = image_channels > 0 ? Layout::flat : Layout::plain, .channels = image_channels})),
      bias(per_channel(store, path + ".bias", out, 0)) {}

Var Linear::operator()(Tape& tape, const Var& x) const {
  const Var b = tape.leaf(*bias);
  return linear(tape, x, tape.leaf(*weight), &b);
}

}  // namespace dtrain
