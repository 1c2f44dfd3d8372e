#include "models/densenet.h"

#include <cmath>

#include "models/chain.h"

namespace dtrain::models {
namespace {

constexpr int kBlocks = 3;

Init for_channels(int64_t channels) {
  return Init::truncated_normal(std::sqrt(2.0f / 9 / static_cast<float>(channels)));
}

void add_dense_layer(Chain& net, const std::string& path, int64_t growth) {
  Chain grown = net.branch(path);
  grown.norm_relu("norm1").conv("conv1", growth, 3, {.activation = Activation::none, .init = for_channels(growth)});
  net.join({net.branch(), grown});
}

void add_transition(Chain& net, const std::string& path) {
  net.norm_relu(path + ".norm").conv(path + ".conv", net.channels(), 1, {.init = for_channels(net.channels())});
  net.average_pool(2, 2, Border::valid);
}

ForwardFunction densenet(const BuildInputs& in, int layers_per_block, int64_t growth) {
  Chain net(in, {.batch_norm = {.epsilon = 1e-5f, .momentum = 0.9f}});
  net.conv("features.conv0", 16, 3, {.activation = Activation::none});
  for (int block = 1; block <= kBlocks; ++block) {
    const std::string number = std::to_string(block);
    for (int layer = 1; layer <= layers_per_block; ++layer)
      add_dense_layer(net, "features.denseblock" + number + ".denselayer" + std::to_string(layer), growth);
    if (block < kBlocks) add_transition(net, "features.transition" + number);
  }
  net.norm_relu("features.norm5").global_average_pool();
  net.linear("classifier", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

// Only the first rate follows `base`; the later ones are fixed.
Schedule densenet_schedule(double base, double steps_per_epoch) {
  return Schedule::piecewise(base, {150, 225, 300}, {0.01, 0.001, 0.0001}, steps_per_epoch);
}

Entry entry(const std::string& name, int layers_per_block, int64_t growth) {
  return {{.name = name,
           .dataset = "cifar10",
           .image_size = 32,
           .classes = 11,
           .batch_size = 64,
           .base_rate = 0.1,
           .schedule = densenet_schedule},
          [=](const BuildInputs& in) { return densenet(in, layers_per_block, growth); }};
}

}  // namespace

std::vector<Entry> densenet_entries() {
  return {entry("densenet40_k12", 12, 12), entry("densenet100_k12", 32, 12), entry("densenet100_k24", 32, 24)};
}

}  // namespace dtrain::models
