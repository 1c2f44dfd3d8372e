#include "models/small.h"

#include "models/chain.h"

namespace dtrain::models {
namespace {

// Flattened pixels -> 1 -> 4096 -> classes. Negligible arithmetic, for timing of everything except the model.
ForwardFunction trivial(const BuildInputs& in) {
  Chain net(in);
  net.linear("fc1", 1).linear("fc2", 4096).linear("fc3", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

// Two 5x5 convolutions with pooling, 512 hidden units (after LeCun et al. 1998).
ForwardFunction lenet(const BuildInputs& in) {
  Chain net(in, {.conv_init = ConvInit::he_fan_out});
  net.conv("conv1", 32, 5).max_pool(2, 2, Border::valid).conv("conv2", 64, 5).max_pool(2, 2, Border::valid);
  net.linear("fc1", 512).linear("fc2", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

// Two 3x3 convolutions, one pooling, 128 hidden units, with dropout before each linear layer (after Keras' example for
// MNIST).
ForwardFunction small_cnn(const BuildInputs& in) {
  Chain net(in, {.conv_init = ConvInit::he_fan_out});
  net.conv("conv1", 32, 3).conv("conv2", 64, 3).max_pool(2, 2, Border::valid).dropout(0.25f);
  net.linear("fc1", 128).dropout(0.5f).linear("fc2", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

// For MNIST and data sets of its shape.
ClassifierInfo mnist_info(const char* name, const char* dataset) {
  return {.name = name, .dataset = dataset, .image_size = 28, .classes = 10, .batch_size = 64, .base_rate = 0.05};
}

}  // namespace

std::vector<Entry> small_entries() {
  std::vector<Entry> entries = {
      {{.name = "trivial", .dataset = "imagenet", .image_size = 227, .classes = 1001, .batch_size = 32}, trivial},
      {{.name = "trivial", .dataset = "cifar10", .image_size = 32, .classes = 11, .batch_size = 32}, trivial},
      {{.name = "lenet", .dataset = "imagenet", .image_size = 28, .classes = 1001, .batch_size = 32}, lenet},
  };
  for (const char* dataset : {"mnist", "fashion_mnist"}) {
    entries.push_back({mnist_info("lenet", dataset), lenet});
    entries.push_back({mnist_info("small_cnn", dataset), small_cnn});
  }
  return entries;
}

}  // namespace dtrain::models
