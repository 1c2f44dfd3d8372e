#include "dtrain/models/resnet.h"

#include <algorithm>
#include <cmath>

#include "dtrain/models/conventions.h"
#include "dtrain/ops/pointwise.h"
#include "models/entry.h"
#include "models/initializers.h"
#include "models/resnet_info.h"

namespace dtrain::models {
namespace {

Padding strided_padding(StridedPadding padding, int kernel, int stride) {
  if (stride == 1 || padding == StridedPadding::both) return kernel / 2;
  const int all = std::max(kernel - stride, 0), more = (all + 1) / 2, less = all / 2;
  return padding == StridedPadding::before ? Padding(more, less, more, less) : Padding(less, more, less, more);
}

}  // namespace

Padding padding_of(const ResNetOptions& options, int kernel, int stride) {
  return strided_padding(options.padding, kernel, stride);
}

namespace {

std::optional<PoolOptions> stem_pool(const ResNetOptions& options) {
  if (options.cifar) return {};
  const StridedPadding padding = options.pool_padding.value_or(options.padding);
  return PoolOptions{.kernel = 3, .stride = 2, .padding = strided_padding(padding, 3, 2)};
}

Linear make_classifier_layer(ParameterStore& store, Trace& trace, int64_t classes, ResNetInit init) {
  const int64_t in = trace.channels();
  Linear fc(store, "fc", in, classes,
            init == ResNetInit::tensorflow ? glorot_uniform(in, classes)
                                           : Init::truncated_normal(std::sqrt(1.0f / static_cast<float>(in))));
  trace.pass(fc);
  return fc;
}

}  // namespace

ResNet::Layer ResNet::make_layer(ParameterStore& store, Trace& trace, const ResNetOptions& options,
                                 const LayerForm& form) {
  Conv2d::Options conv{.conv = {.stride = form.stride, .padding = padding_of(options, form.kernel, form.stride)}};
  if (options.init == ResNetInit::tensorflow)
    conv.init = variance_scaling(int64_t{form.kernel} * form.kernel * trace.channels());
  if (options.norm == ConvNorm::none && form.last) conv.init = Init::normal(0);
  Layer layer{Conv2d(store, form.conv, trace.channels(), form.channels, form.kernel, conv), std::monostate(),
              form.activation};
  const float gamma = options.zero_last_gamma && form.last ? 0.0f : 1.0f;
  if (options.norm == ConvNorm::batch)
    layer.norm = BatchNorm(store, form.norm, form.channels, options.batch_norm, gamma);
  if (options.norm == ConvNorm::group)
    layer.norm = GroupNorm(store, form.norm, form.channels, kNormGroups, 1e-5f, gamma);
  trace.pass(layer.conv);
  return layer;
}

Var ResNet::Layer::operator()(Tape& tape, const Var& x, const Var* residual) const {
  if (const auto* bn = std::get_if<BatchNorm>(&norm)) return ConvBnAct{conv, *bn, activation}(tape, x, residual);
  Var y = conv(tape, x);
  if (const auto* gn = std::get_if<GroupNorm>(&norm)) y = (*gn)(tape, y);
  if (residual) return activation == Activation::relu ? add_relu(tape, y, *residual) : add(tape, y, *residual);
  return activation == Activation::relu ? relu(tape, y) : y;
}

ResNet::Layer ResNet::make_stem(ParameterStore& store, Trace& trace, const ResNetOptions& options) {
  const bool cifar = options.cifar;
  ResNetOptions own = options;
  own.padding = options.stem_padding.value_or(options.padding);
  Layer stem = make_layer(store, trace, own,
                          {.conv = "conv1",
                           .norm = "bn1",
                           .channels = cifar ? 16 : options.width,
                           .kernel = cifar ? 3 : 7,
                           .stride = cifar ? 1 : 2});
  if (const auto pool = stem_pool(options)) trace.pass(*pool);
  return stem;
}

ResNet::Block ResNet::make_block(ParameterStore& store, Trace& trace, const ResNetOptions& options,
                                 const BlockForm& form) {
  const auto& [path, width, stride, first] = form;
  const int64_t out = options.bottleneck ? 4 * width : width;
  const Shape input = trace.shape;
  const int count = options.bottleneck ? 3 : 2;
  Block block;
  const auto add_layer = [&](int64_t channels, int kernel, int step) {
    const auto i = static_cast<int>(block.convs.size()) + 1;
    const std::string number = std::to_string(i);
    block.convs.push_back(make_layer(store, trace, options,
                                     {.conv = form.path + ".conv" + number,
                                      .norm = form.path + ".bn" + number,
                                      .channels = channels,
                                      .kernel = kernel,
                                      .stride = step,
                                      .last = i == count}));
  };
  if (options.bottleneck) {
    const bool late = options.stride_in_3x3;
    add_layer(width, 1, late ? 1 : stride);
    add_layer(width, 3, late ? stride : 1);
    add_layer(out, 1, 1);
  } else {
    add_layer(width, 3, stride);
    add_layer(out, 3, 1);
  }
  if (stride != 1 || input[3] != out || (first && options.project_first)) {
    trace.shape = input;
    block.downsample = make_layer(store, trace, options,
                                  {.conv = path + ".downsample.0",
                                   .norm = path + ".downsample.1",
                                   .channels = out,
                                   .stride = stride,
                                   .activation = Activation::none});
  }
  return block;
}

// In inference the output of a block reuses memory of its dead inputs.
Var ResNet::Block::operator()(Tape& tape, Var x) const {
  Var shortcut = downsample ? (*downsample)(tape, x) : x;
  std::vector<ConvBnAct> chain;
  for (const Layer& layer : convs)
    if (const auto* bn = std::get_if<BatchNorm>(&layer.norm)) chain.push_back({layer.conv, *bn, layer.activation});
  if (!chain.empty()) return conv_bn_act(tape, std::move(x), chain, std::move(shortcut));
  Var y = x;
  for (size_t i = 0; i < convs.size(); ++i) y = convs[i](tape, y, i + 1 == convs.size() ? &shortcut : nullptr);
  return y;
}

ResNet::ResNet(ParameterStore& store, Trace& trace, const ResNetOptions& options, int64_t classes)
    : pool_(stem_pool(options)), stem_(make_stem(store, trace, options)), stages_([&] {
        std::vector<std::vector<Block>> stages;
        int64_t width = options.cifar ? 16 : options.width;
        for (size_t stage = 0; stage < options.blocks.size(); ++stage, width *= 2) {
          stages.emplace_back();
          const int stride = options.strides.empty() ? (stage > 0 ? 2 : 1) : options.strides.at(stage);
          for (int i = 0; i < options.blocks[stage]; ++i) {
            const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
            stages.back().push_back(make_block(
                store, trace, options, {.path = path, .width = width, .stride = i == 0 ? stride : 1, .first = i == 0}));
          }
        }
        return stages;
      }()) {
  if (classes > 0) fc_ = make_classifier_layer(store, trace, classes, options.init);
}

Var ResNet::stem(Tape& tape, const Var& x) const {
  const auto* bn = std::get_if<BatchNorm>(&stem_.norm);
  // Prepared (inference) tapes fuse batch norm and ReLU into the convolution's epilogue instead.
  if (pool_ && bn && tape.prepared() == nullptr) return bn->relu_max_pool(tape, stem_.conv(tape, x), *pool_);
  const Var y = stem_(tape, x);
  return pool_ ? max_pool(tape, y, *pool_) : y;
}

Var ResNet::stage(Tape& tape, size_t index, Var x) const {
  for (const Block& block : stages_.at(index)) x = block(tape, std::move(x));
  return x;
}

Var ResNet::operator()(Tape& tape, const Var& x) const {
  DT_CHECK(fc_, "ResNet: built without classes; call features()");
  Var y = stem(tape, x);
  for (size_t i = 0; i < stages_.size(); ++i) y = stage(tape, i, std::move(y));
  return (*fc_)(tape, global_average_pool(tape, y));
}

std::vector<Var> ResNet::features(Tape& tape, const Var& x) const { return features(tape, x, stages_.size()); }

std::vector<Var> ResNet::features(Tape& tape, const Var& x, size_t stages) const {
  std::vector<Var> result;
  Var y = stem(tape, x);
  for (size_t i = 0; i < stages; ++i) result.push_back(y = stage(tape, i, y));
  return result;
}

namespace {

Entry entry(ClassifierInfo info, const ResNetOptions& options) {
  info.residual = true;
  info.conventions = conventions_of(options);
  return {info, [options](const BuildInputs& in) {
            ResNetOptions with = by_conventions(options, in.conventions);
            with.batch_norm.communicator = in.statistics;
            return forward_of(ResNet(in.store, in.trace, with, in.classes));
          }};
}

// v1 of TensorFlow's official models, with the stride placement of v1.5.
ResNetOptions official_options(const ResNetDepth& depth) {
  return {.blocks = depth.blocks,
          .bottleneck = depth.bottleneck,
          .project_first = true,
          .pool_padding = StridedPadding::after,
          .init = ResNetInit::tensorflow,
          .batch_norm = {.momentum = 0.997f}};
}

}  // namespace

std::vector<Entry> resnet_entries() {
  std::vector<Entry> all;
  for (const ResNetDepth& depth : resnet_depths()) {
    const std::string name = "resnet" + std::to_string(depth.layers);
    for (const bool v1_5 : {false, true}) {
      if (depth.layers > 152) continue;
      all.push_back(entry(resnet_info(v1_5 ? name + "_v1.5" : name, depth.layers),
                          {.blocks = depth.blocks, .bottleneck = depth.bottleneck, .stride_in_3x3 = v1_5}));
    }
  }
  for (const ResNetDepth& depth : resnet_depths())
    all.push_back(entry(official_resnet_info("official_resnet" + std::to_string(depth.layers), depth.layers),
                        official_options(depth)));
  for (const int n : cifar_resnet_blocks())
    all.push_back(entry(cifar_resnet_info("resnet" + std::to_string(6 * n + 2)), {.blocks = {n, n, n}, .cifar = true}));
  return all;
}

}  // namespace dtrain::models
