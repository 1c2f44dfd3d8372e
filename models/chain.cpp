#include "models/chain.h"

#include <cmath>

#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/pointwise.h"
#include "models/initializers.h"

namespace dtrain::models {
namespace {

Var activated(Tape& tape, const Var& x, Activation activation) {
  return activation == Activation::relu ? relu(tape, x) : x;
}

void check_joined(const Shape& first, const Shape& other) {
  DT_CHECK(first.rank() == 4 && other.rank() == 4 && first[1] == other[1] && first[2] == other[2],
           "Chain::join: branches that give ", first, " and ", other, ", expected images of one size");
}

}  // namespace

Chain::Chain(const BuildInputs& inputs, LayerDefaults defaults)
    : store_(&inputs.store), trace_(&inputs.trace), defaults_(std::move(defaults)), shape_(inputs.trace.shape) {
  defaults_.batch_norm.communicator = inputs.statistics;
}

Chain Chain::branch(const std::string& path) const {
  Chain empty = *this;
  empty.layers_ = {};
  if (!path.empty()) empty.path_ = at(path) + ".";
  return empty;
}

template <class Layer>
void Chain::trace(const Layer& layer) {
  trace_->shape = shape_;
  trace_->pass(layer);
  shape_ = trace_->shape;
}

Padding Chain::padding(Size2 kernel, Size2 stride, Border border) const {
  if (border == Border::valid) return 0;
  if (border == Border::same) return Padding::same(shape_[1], shape_[2], kernel, stride);
  return {kernel.h / 2, kernel.h / 2, kernel.w / 2, kernel.w / 2};
}

BatchNorm Chain::make_norm(const std::string& path, int64_t channels) {
  BatchNorm norm(*store_, at(path), channels, defaults_.batch_norm);
  if (!defaults_.norm_scales)
    store_->freeze([&weight = norm.gamma->name](const std::string& name) { return name == weight; });
  return norm;
}

Chain& Chain::conv(const std::string& path, int64_t channels, Size2 kernel, const ConvForm& form) {
  Conv2d::Options options{.conv = {.stride = form.stride, .padding = padding(kernel, form.stride, form.border)},
                          .bias = form.bias && form.norm.empty()};
  if (defaults_.conv_init == ConvInit::variance_scaling)
    options.init = variance_scaling(int64_t{kernel.h} * kernel.w * this->channels());
  if (form.init) options.init = *form.init;
  const Conv2d conv(*store_, at(path), this->channels(), channels, kernel, options);
  if (conv.bias) conv.bias->init = Init::constant(form.initial_bias);
  trace(conv);
  if (!form.norm.empty()) return then(shape_, ConvBnAct{conv, make_norm(form.norm, channels), form.activation});
  return then(shape_, [conv, activation = form.activation](Tape& tape, const Var& x) {
    return activated(tape, conv(tape, x), activation);
  });
}

Chain& Chain::basic_conv(const std::string& path, int64_t channels, Size2 kernel, ConvForm form) {
  form.norm = path + ".bn";
  return conv(path + ".conv", channels, kernel, form);
}

Chain& Chain::norm_relu(const std::string& path) {
  return then(shape_, [norm = make_norm(path, channels())](Tape& tape, const Var& x) {
    return norm(tape, x, Activation::relu);
  });
}

Chain& Chain::max_pool(Size2 kernel, Size2 stride, Border border) {
  const PoolOptions options{.kernel = kernel, .stride = stride, .padding = padding(kernel, stride, border)};
  trace(options);
  return then(shape_, [options](Tape& tape, const Var& x) { return dtrain::max_pool(tape, x, options); });
}

Chain& Chain::average_pool(Size2 kernel, Size2 stride, Border border) {
  const PoolOptions options{
      .kernel = kernel, .stride = stride, .padding = padding(kernel, stride, border), .count_padding = false};
  trace(options);
  return then(shape_, [options](Tape& tape, const Var& x) { return dtrain::average_pool(tape, x, options); });
}

Chain& Chain::global_average_pool() {
  return then({1, channels()}, [](Tape& tape, const Var& x) { return dtrain::global_average_pool(tape, x); });
}

Chain& Chain::dropout(float rate) {
  return then(shape_, [rate](Tape& tape, const Var& x) { return dtrain::dropout(tape, x, rate); });
}

Chain& Chain::linear(const std::string& path, int64_t out, const LinearForm& form) {
  const bool image = shape_.rank() == 4;
  const int64_t in = shape_.count();
  const float gain = form.activation == Activation::relu ? 2.0f : 1.0f;
  const Init init = form.init.value_or(Init::truncated_normal(std::sqrt(gain / static_cast<float>(in))));
  const Linear linear(*store_, at(path), in, out, init, image ? channels() : 0);
  linear.bias->init = Init::constant(form.initial_bias);
  trace(linear);
  return then(shape_, [linear, image, activation = form.activation](Tape& tape, const Var& x) {
    return activated(tape, linear(tape, image ? flatten(tape, x) : x), activation);
  });
}

Chain& Chain::then(const Shape& shape, std::function<Var(Tape&, const Var&)> layer) {
  shape_ = shape;
  layers_.list.push_back(std::move(layer));
  return *this;
}

Chain& Chain::join(const std::vector<Chain>& branches) {
  DT_CHECK(!branches.empty(), "Chain::join: no branch");
  const Shape& first = branches.front().shape_;
  int64_t channels = 0;
  std::vector<Layers> parts;
  for (const Chain& branch : branches) {
    check_joined(first, branch.shape_);
    channels += branch.channels();
    parts.push_back(branch.layers_);
  }
  return then({first[0], first[1], first[2], channels}, [parts](Tape& tape, const Var& x) {
    std::vector<Var> images;
    for (const Layers& part : parts) images.push_back(part(tape, x));
    return concat_channels(tape, images);
  });
}

Chain& Chain::add(const Chain& one, const Chain& other) {
  DT_CHECK(one.shape_ == other.shape_, "Chain::add: branches that give ", one.shape_, " and ", other.shape_,
           ", expected equal shapes");
  return then(one.shape_, [one = one.layers_, other = other.layers_](Tape& tape, const Var& x) {
    const Var first = one(tape, x);
    return dtrain::add(tape, first, other(tape, x));
  });
}

Var Layers::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (const auto& layer : list) y = layer(tape, y);
  return y;
}

}  // namespace dtrain::models
