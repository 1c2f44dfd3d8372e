#include "models/small.h"

#include "models/chain.h"

namespace dtrain::models {
namespace {

// All pixels -> 1 -> 4096 -> classes: hardly any arithmetic, so that it times everything but the model.
Forward trivial(const BuildInputs& in) {
  Chain net(in);
  net.linear("fc1", 1).linear("fc2", 4096).linear("fc3", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

// Two 5x5 convolutions with pooling, 512 hidden units (after LeCun et al. 1998).
Forward lenet(const BuildInputs& in) {
  Chain net(in, {.conv_init = ConvInit::he_fan_out});
  net.conv("conv1", 32, 5).max_pool(2, 2, Border::valid).conv("conv2", 64, 5).max_pool(2, 2, Border::valid);
  net.linear("fc1", 512).linear("fc2", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

}  // namespace

std::vector<Entry> small_entries() {
  return {
      {{.name = "trivial", .dataset = "imagenet", .image_size = 227, .classes = 1001, .batch_size = 32}, trivial},
      {{.name = "trivial", .dataset = "cifar10", .image_size = 32, .classes = 11, .batch_size = 32}, trivial},
      {{.name = "lenet", .dataset = "imagenet", .image_size = 28, .classes = 1001, .batch_size = 32}, lenet},
  };
}

}  // namespace dtrain::models
