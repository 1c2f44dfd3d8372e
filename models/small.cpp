#include "models/small.h"

#include <cmath>

#include "libdtrain/ops/pointwise.h"

namespace dtrain::models {
namespace {

const PoolOptions kPool{.kernel = 2, .stride = 2, .padding = 0};

// `gain` 2 in front of a ReLU, 1 for logits; `image_channels` as in Linear.
Linear make_linear(ParameterStore& store, Trace& trace, const std::string& path, int64_t out, float gain,
                   int64_t image_channels = 0) {
  const int64_t in = trace.features();
  const Init init = Init::truncated_normal(std::sqrt(gain / static_cast<float>(in)));
  Linear layer(store, path, in, out, init, image_channels);
  trace.pass(layer);
  return layer;
}

Conv2d make_conv(ParameterStore& store, Trace& trace, const std::string& path, int64_t out) {
  Conv2d conv(store, path, trace.channels(), out, 5, {.conv = {.padding = 2}, .bias = true});
  trace.pass(conv);
  trace.pass(kPool);
  return conv;
}

}  // namespace

Trivial::Trivial(ParameterStore& store, Trace& trace, int64_t classes)
    : fc1_(make_linear(store, trace, "fc1", 1, 2, trace.channels())),
      fc2_(make_linear(store, trace, "fc2", 4096, 2)),
      fc3_(make_linear(store, trace, "fc3", classes, 1)) {}

Var Trivial::operator()(Tape& tape, const Var& x) const {
  Var y = relu(tape, fc1_(tape, flatten(tape, x)));
  return fc3_(tape, relu(tape, fc2_(tape, y)));
}

LeNet::LeNet(ParameterStore& store, Trace& trace, int64_t classes)
    : conv1_(make_conv(store, trace, "conv1", 32)),
      conv2_(make_conv(store, trace, "conv2", 64)),
      fc1_(make_linear(store, trace, "fc1", 512, 2, trace.channels())),
      fc2_(make_linear(store, trace, "fc2", classes, 1)) {}

Var LeNet::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (const Conv2d* conv : {&conv1_, &conv2_}) y = max_pool(tape, relu(tape, (*conv)(tape, y)), kPool);
  return fc2_(tape, relu(tape, fc1_(tape, flatten(tape, y))));
}

std::vector<Entry> small_entries() {
  const auto trivial = [](const BuildInputs& in) { return forward_of(Trivial(in.store, in.trace, in.classes)); };
  const auto lenet = [](const BuildInputs& in) { return forward_of(LeNet(in.store, in.trace, in.classes)); };
  return {
      {{.name = "trivial", .dataset = "imagenet", .image_size = 227, .classes = 1001, .batch_size = 32}, trivial},
      {{.name = "trivial", .dataset = "cifar10", .image_size = 32, .classes = 11, .batch_size = 32}, trivial},
      {{.name = "lenet", .dataset = "imagenet", .image_size = 28, .classes = 1001, .batch_size = 32}, lenet},
  };
}

}  // namespace dtrain::models
