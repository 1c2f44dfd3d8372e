#include "models/alexnet.h"

#include "dtrain/ops/local_response_norm.h"
#include "models/chain.h"

namespace dtrain::models {
namespace {

ForwardFunction imagenet_form(const BuildInputs& in) {
  Chain net(in);
  net.conv("features.0", 64, 11, {.stride = 4, .border = Border::valid}).max_pool(3, 2, Border::valid);
  net.conv("features.3", 192, 5).max_pool(3, 2, Border::valid);
  net.conv("features.6", 384, 3).conv("features.8", 384, 3).conv("features.10", 256, 3).max_pool(3, 2, Border::valid);
  for (const char* path : {"classifier.1", "classifier.4"}) net.linear(path, 4096).dropout(0.5f);
  net.linear("classifier.6", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

void normalize_responses(Chain& net) {
  net.then(net.shape(), [](Tape& tape, const Var& x) {
    return local_response_norm(tape, x, {.radius = 4, .bias = 1, .alpha = 0.001f / 9, .beta = 0.75f});
  });
}

ForwardFunction cifar_form(const BuildInputs& in) {
  const Init narrow = Init::truncated_normal(0.05f), wide = Init::truncated_normal(0.04f);
  Chain net(in);
  net.conv("conv1", 64, 5, {.init = narrow}).max_pool(3, 2, Border::same);
  normalize_responses(net);
  net.conv("conv2", 64, 5, {.init = narrow, .initial_bias = 0.1f});
  normalize_responses(net);
  net.max_pool(3, 2, Border::same);
  net.linear("fc1", 384, {.init = wide, .initial_bias = 0.1f}).linear("fc2", 192, {.init = wide, .initial_bias = 0.1f});
  net.linear("fc3", in.classes, {.activation = Activation::none});
  return forward_of(net.layers());
}

// x0.1 every hundred epochs.
Schedule cifar_schedule(double base, double steps_per_epoch) {
  return {.decay = Schedule::Decay::exponential,
          .base = base,
          .factor = 0.1,
          .decay_epochs = 100,
          .steps_per_epoch = steps_per_epoch};
}

}  // namespace

std::vector<Entry> alexnet_entries() {
  return {{{.name = "alexnet", .dataset = "imagenet", .image_size = 227, .classes = 1001, .batch_size = 512},
           imagenet_form},
          {{.name = "alexnet",
            .dataset = "cifar10",
            .image_size = 32,
            .classes = 11,
            .batch_size = 128,
            .base_rate = 0.1,
            .schedule = cifar_schedule},
           cifar_form}};
}

}  // namespace dtrain::models
