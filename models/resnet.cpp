#include "models/resnet.h"

#include <cmath>

namespace dtrain::models {
namespace {

ConvBnAct conv_bn(ParameterStore& store, Trace& trace, const std::string& conv, const std::string& bn,
                  const BatchNormOptions& bn_options, int64_t out, int kernel, int stride, Activation activation) {
  Conv2d::Options options;
  options.conv.stride = stride;
  options.conv.padding = kernel / 2;
  ConvBnAct layer{Conv2d(store, conv, trace.channels(), out, kernel, options), BatchNorm(store, bn, out, bn_options),
                  activation};
  trace.pass(layer.conv);
  return layer;
}

ConvBnAct make_stem(ParameterStore& store, Trace& trace, const ResNetOptions& options) {
  const bool cifar = options.cifar;
  ConvBnAct stem = conv_bn(store, trace, "conv1", "bn1", options.batch_norm, cifar ? 16 : 64, cifar ? 3 : 7,
                           cifar ? 1 : 2, Activation::relu);
  if (!cifar) trace.pass(PoolOptions{});
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
    return conv_bn(store, trace, path + ".conv" + number, path + ".bn" + number, options.batch_norm, channels, kernel,
                   step, activation);
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
    block.downsample = conv_bn(store, trace, path + ".downsample.0", path + ".downsample.1", options.batch_norm, out, 1,
                               stride, Activation::none);
  }
  return block;
}

Var ResNet::Block::operator()(Tape& tape, const Var& x) const {
  const Var shortcut = downsample ? (*downsample)(tape, x) : x;
  return conv_bn_act(tape, x, convs, &shortcut);
}

ResNet::ResNet(ParameterStore& store, Trace& trace, const ResNetOptions& options, int64_t classes)
    : max_pooled_(!options.cifar),
      stem_(make_stem(store, trace, options)),
      blocks_([&] {
        std::vector<Block> blocks;
        int64_t width = options.cifar ? 16 : 64;
        for (size_t stage = 0; stage < options.blocks.size(); ++stage, width *= 2) {
          for (int i = 0; i < options.blocks[stage]; ++i) {
            const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
            blocks.push_back(make_block(store, trace, path, options, width, stage > 0 && i == 0 ? 2 : 1));
          }
        }
        return blocks;
      }()),
      fc_(make_classifier_layer(store, trace, classes)) {}

Var ResNet::operator()(Tape& tape, const Var& x) const {
  Var y = max_pooled_ ? stem_.bn.relu_max_pool(tape, stem_.conv(tape, x)) : stem_(tape, x);
  for (const Block& block : blocks_) y = block(tape, y);
  return fc_(tape, global_average_pool(tape, y));
}

}  // namespace dtrain::models
