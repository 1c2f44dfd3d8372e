#include "models/mobilenet.h"

#include "dtrain/ops/pointwise.h"

namespace dtrain::models {
namespace {

constexpr float kDropout = 0.2f;
const Init kInit = Init::truncated_normal(0.09f);

// Sequential builder of layers.
struct Builder {
  ParameterStore& store;
  Trace& trace;
  BatchNormOptions batch_norm;

  // Named `<path>.0` and `<path>.1`, or with later numbers inside a block.
  ConvBnAct layer(const std::string& conv, const std::string& bn, int64_t out, int kernel, int stride,
                  Activation activation, bool depthwise = false) {
    const int64_t in = trace.channels();
    const Conv2d::Options options{.conv = {.stride = stride,
                                           .padding = Padding::same(trace.shape[1], trace.shape[2], kernel, stride),
                                           .groups = depthwise ? static_cast<int>(in) : 1},
                                  .init = kInit};
    const Conv2d filters(store, conv, in, out, kernel, options);
    trace.pass(filters);
    return {filters, BatchNorm(store, bn, out, batch_norm), activation};
  }
};

// Table 2: expansion, channels, repeats and stride of the first block.
struct Stage {
  int64_t expansion, channels;
  int repeats, stride;
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr int64_t kStemChannels = 32, kLastChannels = 1280;

}  // namespace

MobileNet::MobileNet(ParameterStore& store, Trace& trace, int64_t classes, Communicator* statistics)
    : blocks_([&] {
        Builder build{store, trace, {.epsilon = 1e-3f, .momentum = 0.997f, .communicator = statistics}};
        std::vector<Block> blocks;
        const auto path = [&] { return "features." + std::to_string(blocks.size()); };
        const auto add_single = [&](int64_t channels, int kernel, int stride) {
          blocks.push_back(
              {{build.layer(path() + ".0", path() + ".1", channels, kernel, stride, Activation::relu6)}, false});
        };
        add_single(kStemChannels, 3, 2);
        for (const Stage& stage : kStages)
          for (int i = 0; i < stage.repeats; ++i) {
            const int stride = i == 0 ? stage.stride : 1;
            const int64_t in = trace.channels(), wide = in * stage.expansion;
            const std::string conv = path() + ".conv.";
            Block block{{}, stride == 1 && in == stage.channels};
            int index = 0;  // torchvision numbers conv, norm and activation as one, except for the last
            const auto add = [&](int64_t channels, int kernel, int step, bool depthwise) {
              const std::string layer = conv + std::to_string(index++);
              block.layers.push_back(
                  build.layer(layer + ".0", layer + ".1", channels, kernel, step, Activation::relu6, depthwise));
            };
            if (stage.expansion > 1) add(wide, 1, 1, false);
            add(wide, 3, stride, true);
            block.layers.push_back(build.layer(conv + std::to_string(index), conv + std::to_string(index + 1),
                                               stage.channels, 1, 1, Activation::none));
            blocks.push_back(std::move(block));
          }
        add_single(kLastChannels, 1, 1);
        return blocks;
      }()),
      classifier_(store, "classifier.1", kLastChannels, classes, kInit) {
  trace.pass(classifier_);
}

Var MobileNet::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (const Block& block : blocks_) {
    const Var shortcut = y;
    for (const ConvBnAct& layer : block.layers)
      y = layer(tape, y, block.residual && &layer == &block.layers.back() ? &shortcut : nullptr);
  }
  return classifier_(tape, dropout(tape, global_average_pool(tape, y), kDropout));
}

std::vector<Entry> mobilenet_entries() {
  return {{{.name = "mobilenet", .dataset = "imagenet", .image_size = 224, .classes = 1001, .batch_size = 32},
           [](const BuildInputs& in) { return forward_of(MobileNet(in.store, in.trace, in.classes, in.statistics)); }}};
}

}  // namespace dtrain::models
