#include "models/vgg.h"

#include <algorithm>

#include "models/chain.h"

namespace dtrain::models {
namespace {

// `convs`: number of 3x3 convolutions in each of the five stages.
Chain make_vgg(const BuildInputs& in, const std::vector<int>& convs) {
  Chain net(in, {.conv_init = ConvInit::he_fan_out});
  int index = 0;  // torchvision's indices include ReLUs and pools
  int64_t channels = 64;
  for (const int count : convs) {
    for (int i = 0; i < count; ++i, index += 2) net.conv("features." + std::to_string(index), channels, 3);
    net.max_pool(2, 2, Border::valid);
    ++index;
    channels = std::min<int64_t>(2 * channels, 512);
  }
  for (const char* path : {"classifier.0", "classifier.3"}) net.linear(path, 4096).dropout(0.5f);
  return net.linear("classifier.6", in.classes, {.activation = Activation::none});
}

Entry entry(const std::string& name, const std::vector<int>& convs) {
  return {{.name = name, .dataset = "imagenet", .image_size = 224, .classes = 1001, .batch_size = 64},
          [convs](const BuildInputs& in) { return forward_of(make_vgg(in, convs).layers()); }};
}

}  // namespace

std::vector<Entry> vgg_entries() {
  return {entry("vgg11", {1, 1, 2, 2, 2}), entry("vgg16", {2, 2, 3, 3, 3}), entry("vgg19", {2, 2, 4, 4, 4})};
}

}  // namespace dtrain::models
