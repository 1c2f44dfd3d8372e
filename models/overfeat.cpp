#include "models/overfeat.h"

#include "models/chain.h"

namespace dtrain::models {
namespace {

// Path indices count ReLUs, pools and dropouts, as in torchvision.
ForwardFunction overfeat(const BuildInputs& in) {
  Chain net(in);
  net.conv("features.0", 96, 11, {.stride = 4, .border = Border::valid}).max_pool(2, 2, Border::valid);
  net.conv("features.3", 256, 5, {.border = Border::valid}).max_pool(2, 2, Border::valid);
  net.conv("features.6", 512, 3).conv("features.8", 1024, 3).conv("features.10", 1024, 3);
  net.max_pool(2, 2, Border::valid);
  net.linear("classifier.0", 3072).dropout(0.5f).linear("classifier.3", 4096).dropout(0.5f);
  net.linear("classifier.6", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

}  // namespace

std::vector<Entry> overfeat_entries() {
  return {
      {{.name = "overfeat", .dataset = "imagenet", .image_size = 231, .classes = 1001, .batch_size = 32}, overfeat}};
}

}  // namespace dtrain::models
