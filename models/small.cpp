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

// Without a change of size.
Conv2d make_conv(ParameterStore& store, Trace& trace, const std::string& path, int64_t out, int kernel) {
  Conv2d conv(store, path, trace.channels(), out, kernel, {.conv = {.padding = kernel / 2}, .bias = true});
  trace.pass(conv);
  return conv;
}

Conv2d make_pooled_conv(ParameterStore& store, Trace& trace, const std::string& path, int64_t out, int kernel) {
  Conv2d conv = make_conv(store, trace, path, out, kernel);
  trace.pass(kPool);
  return conv;
}

// Of a model for MNIST or for what has its form.
ClassifierInfo mnist_info(const char* name, const char* dataset) {
  return {.name = name, .dataset = dataset, .image_size = 28, .classes = 10, .batch_size = 64, .base_rate = 0.05};
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
    : conv1_(make_pooled_conv(store, trace, "conv1", 32, 5)),
      conv2_(make_pooled_conv(store, trace, "conv2", 64, 5)),
      fc1_(make_linear(store, trace, "fc1", 512, 2, trace.channels())),
      fc2_(make_linear(store, trace, "fc2", classes, 1)) {}

Var LeNet::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (const Conv2d* conv : {&conv1_, &conv2_}) y = max_pool(tape, relu(tape, (*conv)(tape, y)), kPool);
  return fc2_(tape, relu(tape, fc1_(tape, flatten(tape, y))));
}

SmallCnn::SmallCnn(ParameterStore& store, Trace& trace, int64_t classes)
    : conv1_(make_conv(store, trace, "conv1", 32, 3)),
      conv2_(make_pooled_conv(store, trace, "conv2", 64, 3)),
      fc1_(make_linear(store, trace, "fc1", 128, 2, trace.channels())),
      fc2_(make_linear(store, trace, "fc2", classes, 1)) {}

Var SmallCnn::operator()(Tape& tape, const Var& x) const {
  Var y = relu(tape, conv2_(tape, relu(tape, conv1_(tape, x))));
  y = dropout(tape, flatten(tape, max_pool(tape, y, kPool)), 0.25f);
  return fc2_(tape, dropout(tape, relu(tape, fc1_(tape, y)), 0.5f));
}

std::vector<Entry> small_entries() {
  const auto trivial = [](const BuildInputs& in) { return forward_of(Trivial(in.store, in.trace, in.classes)); };
  const auto lenet = [](const BuildInputs& in) { return forward_of(LeNet(in.store, in.trace, in.classes)); };
  const auto small_cnn = [](const BuildInputs& in) { return forward_of(SmallCnn(in.store, in.trace, in.classes)); };
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
