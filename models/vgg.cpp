#include "models/vgg.h"

#include <algorithm>
#include <cmath>

#include "libdtrain/ops/pointwise.h"

namespace dtrain::models {
namespace {

const PoolOptions kPool{.kernel = 2, .stride = 2, .padding = 0};
constexpr float kDropout = 0.5f;

}  // namespace

Vgg::Vgg(ParameterStore& store, Trace& trace, const std::vector<int>& convs, int64_t classes) {
  const Conv2d::Options options{.conv = {.padding = 1}, .bias = true};
  int index = 0;  // torchvision counts the ReLUs and the pools too
  int64_t channels = 64;
  for (int count : convs) {
    std::vector<Conv2d>& stage = stages_.emplace_back();
    for (int i = 0; i < count; ++i, index += 2) {
      stage.emplace_back(store, "features." + std::to_string(index), trace.channels(), channels, 3, options);
      trace.pass(stage.back());
    }
    trace.pass(kPool);
    ++index;
    channels = std::min<int64_t>(2 * channels, 512);
  }
  const int64_t image_channels = trace.channels();
  for (int i : {0, 3, 6}) {  // ReLU and dropout in between
    const bool last = i == 6;
    const int64_t in = trace.features();
    const float stddev = std::sqrt((last ? 1.0f : 2.0f) / static_cast<float>(in));
    linears_.emplace_back(store, "classifier." + std::to_string(i), in, last ? classes : 4096,
                          Init::truncated_normal(stddev), i == 0 ? image_channels : 0);
    trace.pass(linears_.back());
  }
}

Var Vgg::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (const std::vector<Conv2d>& stage : stages_) {
    for (const Conv2d& conv : stage) y = relu(tape, conv(tape, y));
    y = max_pool(tape, y, kPool);
  }
  y = flatten(tape, y);
  for (size_t i = 0; i + 1 < linears_.size(); ++i) y = dropout(tape, relu(tape, linears_[i](tape, y)), kDropout);
  return linears_.back()(tape, y);
}

namespace {

Entry entry(const std::string& name, const std::vector<int>& convs) {
  return {{.name = name, .dataset = "imagenet", .image_size = 224, .classes = 1001, .batch_size = 64},
          [convs](const BuildInputs& in) { return forward_of(Vgg(in.store, in.trace, convs, in.classes)); }};
}

}  // namespace

std::vector<Entry> vgg_entries() {
  return {entry("vgg11", {1, 1, 2, 2, 2}), entry("vgg16", {2, 2, 3, 3, 3}), entry("vgg19", {2, 2, 4, 4, 4})};
}

}  // namespace dtrain::models
