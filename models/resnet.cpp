#include "models/resnet.h"

#include <algorithm>
#include <cmath>

namespace dtrain::models {

Padding padding_of(const ResNetOptions& options, int kernel, int stride) {
  if (stride == 1 || options.padding == StridedPadding::both) return kernel / 2;
  const int all = std::max(kernel - stride, 0), more = (all + 1) / 2, less = all / 2;
  return options.padding == StridedPadding::before ? Padding(more, less, more, less) : Padding(less, more, less, more);
}

namespace {

ConvBnAct conv_bn(ParameterStore& store, Trace& trace, const std::string& conv, const std::string& bn,
                  const ResNetOptions& options, int64_t out, int kernel, int stride, Activation activation) {
  const Conv2d::Options conv_options{.conv = {.stride = stride, .padding = padding_of(options, kernel, stride)}};
  ConvBnAct layer{Conv2d(store, conv, trace.channels(), out, kernel, conv_options),
                  BatchNorm(store, bn, out, options.batch_norm), activation};
  trace.pass(layer.conv);
  return layer;
}

std::optional<PoolOptions> stem_pool(const ResNetOptions& options) {
  if (options.cifar) return {};
  return PoolOptions{.kernel = 3, .stride = 2, .padding = padding_of(options, 3, 2)};
}

ConvBnAct make_stem(ParameterStore& store, Trace& trace, const ResNetOptions& options) {
  const bool cifar = options.cifar;
  ConvBnAct stem =
      conv_bn(store, trace, "conv1", "bn1", options, cifar ? 16 : 64, cifar ? 3 : 7, cifar ? 1 : 2, Activation::relu);
  if (const auto pool = stem_pool(options)) trace.pass(*pool);
  return stem;
}

Linear make_classifier_layer(ParameterStore& store, Trace& trace, int64_t classes) {
  const int64_t in = trace.channels();
  Linear fc(store, "fc", in, classes, Init::truncated_normal(std::sqrt(1.0f / static_cast<float>(in))));
  trace.pass(fc);
  return fc;
}

}  // namespace

ResNet::Block ResNet::make_block(ParameterStore& store, Trace& trace, const std::string& path,
                                 const ResNetOptions& options, int64_t width, int stride) {
  const int64_t out = options.bottleneck ? 4 * width : width;
  const Shape input = trace.shape;
  const auto layer = [&](int i, int64_t channels, int kernel, int step, Activation activation) {
    const std::string number = std::to_string(i);
    return conv_bn(store, trace, path + ".conv" + number, path + ".bn" + number, options, channels, kernel, step,
                   activation);
  };
  Block block;
  if (options.bottleneck) {
    const bool late = options.stride_in_3x3;
    block.convs.push_back(layer(1, width, 1, late ? 1 : stride, Activation::relu));
    block.convs.push_back(layer(2, width, 3, late ? stride : 1, Activation::relu));
    block.convs.push_back(layer(3, out, 1, 1, Activation::relu));
  } else {
    block.convs.push_back(layer(1, width, 3, stride, Activation::relu));
    block.convs.push_back(layer(2, out, 3, 1, Activation::relu));
  }
  if (stride != 1 || input[3] != out) {
    trace.shape = input;
    block.downsample = conv_bn(store, trace, path + ".downsample.0", path + ".downsample.1", options, out, 1, stride,
                               Activation::none);
  }
  return block;
}

Var ResNet::Block::operator()(Tape& tape, const Var& x) const {
  const Var shortcut = downsample ? (*downsample)(tape, x) : x;
  return conv_bn_act(tape, x, convs, &shortcut);
}

ResNet::ResNet(ParameterStore& store, Trace& trace, const ResNetOptions& options, int64_t classes)
    : pool_(stem_pool(options)), stem_(make_stem(store, trace, options)), stages_([&] {
        std::vector<std::vector<Block>> stages;
        int64_t width = options.cifar ? 16 : 64;
        for (size_t stage = 0; stage < options.blocks.size(); ++stage, width *= 2) {
          stages.emplace_back();
          for (int i = 0; i < options.blocks[stage]; ++i) {
            const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
            stages.back().push_back(make_block(store, trace, path, options, width, stage > 0 && i == 0 ? 2 : 1));
          }
        }
        return stages;
      }()) {
  if (classes > 0) fc_ = make_classifier_layer(store, trace, classes);
}

Var ResNet::stem(Tape& tape, const Var& x) const {
  return pool_ ? stem_.bn.relu_max_pool(tape, stem_.conv(tape, x), *pool_) : stem_(tape, x);
}

Var ResNet::operator()(Tape& tape, const Var& x) const {
  DT_CHECK(fc_, "ResNet: built without classes, it gives features() alone");
  Var y = stem(tape, x);
  for (const std::vector<Block>& stage : stages_)
    for (const Block& block : stage) y = block(tape, y);
  return (*fc_)(tape, global_average_pool(tape, y));
}

std::vector<Var> ResNet::features(Tape& tape, const Var& x) const {
  std::vector<Var> result;
  Var y = stem(tape, x);
  for (const std::vector<Block>& stage : stages_) {
    for (const Block& block : stage) y = block(tape, y);
    result.push_back(y);
  }
  return result;
}

namespace {

// Five epochs of warm-up, then x0.1 at epochs 30, 60, 80 and 90.
Schedule imagenet_schedule(double base, double steps_per_epoch) {
  Schedule schedule =
      Schedule::piecewise(base, {30, 60, 80, 90}, {0.1 * base, 1e-2 * base, 1e-3 * base, 1e-4 * base}, steps_per_epoch);
  schedule.warmup_epochs = 5;
  return schedule;
}

// `base` up to epoch 82 only; then 0.01, from 123 on 0.001 and from 300 on 0.0002, whatever `base` is.
Schedule cifar_schedule(double base, double steps_per_epoch) {
  return Schedule::piecewise(base, {82, 123, 300}, {0.01, 0.001, 0.0002}, steps_per_epoch);
}

Entry entry(const ClassifierInfo& info, const ResNetOptions& options) {
  return {info, [options](const BuildInputs& in) {
            ResNetOptions with = options;
            with.batch_norm.communicator = in.statistics;
            return forward_of(ResNet(in.store, in.trace, with, in.classes));
          }};
}

Entry imagenet_entry(const std::string& name, int64_t batch_size, const ResNetOptions& options) {
  return entry({.name = name,
                .dataset = "imagenet",
                .image_size = 224,
                .classes = 1001,
                .batch_size = batch_size,
                .base_rate = 0.128,
                .rate_grows_with_batch = true,
                .schedule = imagenet_schedule},
               options);
}

Entry cifar_entry(const std::string& name, const ResNetOptions& options) {
  return entry({.name = name,
                .dataset = "cifar10",
                .image_size = 32,
                .classes = 11,
                .batch_size = 128,
                .base_rate = 0.1,
                .schedule = cifar_schedule},
               options);
}

}  // namespace

std::vector<Entry> resnet_entries() {
  struct Depth {
    int layers;
    std::vector<int> blocks;
    bool bottleneck;
    int64_t batch_size;
  };
  const Depth depths[] = {{18, {2, 2, 2, 2}, false, 32},
                          {34, {3, 4, 6, 3}, false, 32},
                          {50, {3, 4, 6, 3}, true, 64},
                          {101, {3, 4, 23, 3}, true, 32},
                          {152, {3, 8, 36, 3}, true, 32}};
  std::vector<Entry> all;
  for (const Depth& depth : depths) {
    const std::string name = "resnet" + std::to_string(depth.layers);
    for (const bool v1_5 : {false, true})
      all.push_back(imagenet_entry(v1_5 ? name + "_v1.5" : name, depth.batch_size,
                                   {.blocks = depth.blocks, .bottleneck = depth.bottleneck, .stride_in_3x3 = v1_5}));
  }
  for (const int n : {3, 5, 7, 9, 18})
    all.push_back(cifar_entry("resnet" + std::to_string(6 * n + 2), {.blocks = {n, n, n}, .cifar = true}));
  return all;
}

}  // namespace dtrain::models
