#include "models/resnet_v2.h"

#include "dtrain/ops/concat_channels.h"
#include "models/chain.h"
#include "models/initializers.h"
#include "models/resnet_info.h"

namespace dtrain::models {
namespace {

struct ResNetV2Options {
  std::vector<int> blocks{};
  bool bottleneck = false;
  bool official = false;  // TensorFlow's official model, else tf_cnn_benchmarks'
  bool cifar = false;
};

struct BlockForm {
  int64_t width = 0, out = 0;
  int stride = 1;
  bool projects = false;
};

// The bottleneck stride is in the first convolution (tf_cnn_benchmarks) or the second (official).
void add_convs(Chain& net, const ResNetV2Options& options, const BlockForm& form) {
  const auto conv = [&](const std::string& path, int64_t channels, int kernel, int stride, const std::string& norm) {
    net.conv(path, channels, kernel,
             {.stride = stride,
              .border = options.cifar ? Border::same : Border::half,
              .norm = norm,
              .bias = false,
              .activation = norm.empty() ? Activation::none : Activation::relu});
  };
  const bool late = options.official;
  if (options.bottleneck) {
    conv("conv1", form.width, 1, late ? 1 : form.stride, "bn2");
    conv("conv2", form.width, 3, late ? form.stride : 1, "bn3");
    conv("conv3", form.out, 1, 1, "");
  } else {
    conv("conv1", form.width, 3, form.stride, "bn2");
    conv("conv2", form.out, 3, 1, "");
  }
}

// Parameter-free shortcut: subsampling and symmetric zero padding of channels (He et al. 2015, section 4.1, option A).
void pad_channels(Chain& shortcut, const BlockForm& form) {
  const int64_t zeros = (form.out - shortcut.channels()) / 2;
  shortcut.average_pool(1, form.stride, Border::valid);
  const Shape& image = shortcut.shape();
  shortcut.then({1, image[1], image[2], form.out}, [zeros](Tape& tape, const Var& x) {
    const Shape& given = x.shape();
    const Var none = tape.constant(tape.context().zeros({given[0], given[1], given[2], zeros}, x.value.dtype()));
    return concat_channels(tape, {none, x, none});
  });
}

void add_block(Chain& net, const std::string& path, const ResNetV2Options& options, const BlockForm& form) {
  if (form.projects) net.norm_relu(path + ".bn1");
  Chain shortcut = net.branch(path), body = net.branch(path);
  if (!form.projects) body.norm_relu("bn1");
  if (form.projects)
    shortcut.conv("downsample.0", form.out, 1,
                  {.stride = form.stride, .border = Border::half, .bias = false, .activation = Activation::none});
  else if (shortcut.channels() != form.out)
    pad_channels(shortcut, form);
  add_convs(body, options, form);
  net.add(shortcut, body);
}

// tf_cnn_benchmarks has a batch norm after the stem's convolution.
void add_stem(Chain& net, const ResNetV2Options& options) {
  const std::string norm = options.official ? "" : "bn1";
  const Activation activation = options.official ? Activation::none : Activation::relu;
  if (options.cifar) {
    net.conv("conv1", 16, 3, {.norm = norm, .activation = activation});
    return;
  }
  net.conv("conv1", 64, 7,
           {.stride = 2, .border = Border::half, .norm = norm, .bias = false, .activation = activation});
  net.max_pool(3, 2, Border::same);
}

Chain make_resnet_v2(const BuildInputs& in, const ResNetV2Options& options) {
  Chain net(in, {.batch_norm = {.epsilon = 1e-5f, .momentum = options.official ? 0.997f : 0.9f}});
  add_stem(net, options);
  int64_t width = options.cifar ? 16 : 64;
  for (size_t stage = 0; stage < options.blocks.size(); ++stage, width *= 2)
    for (int i = 0; i < options.blocks[stage]; ++i)
      add_block(net, "layer" + std::to_string(stage + 1) + "." + std::to_string(i), options,
                {.width = width,
                 .out = options.bottleneck ? 4 * width : width,
                 .stride = stage > 0 && i == 0 ? 2 : 1,
                 .projects = i == 0 && !options.cifar});
  net.norm_relu("bn").global_average_pool();
  LinearForm classifier{.activation = Activation::none};
  if (options.official) classifier.init = glorot_uniform(net.channels(), in.classes);
  return net.linear("fc", in.classes, classifier);
}

Entry entry_v2(const ClassifierInfo& info, const ResNetV2Options& options) {
  return {info, [options](const BuildInputs& in) { return forward_of(make_resnet_v2(in, options).layers()); }};
}

}  // namespace

std::vector<Entry> resnet_v2_entries() {
  std::vector<Entry> all;
  for (const ResNetDepth& depth : resnet_depths()) {
    if (!depth.bottleneck || depth.layers > 152) continue;
    all.push_back(entry_v2(resnet_info("resnet" + std::to_string(depth.layers) + "_v2", depth.layers),
                           {.blocks = depth.blocks, .bottleneck = true}));
  }
  for (const ResNetDepth& depth : resnet_depths())
    all.push_back(entry_v2(official_resnet_info("official_resnet" + std::to_string(depth.layers) + "_v2", depth.layers),
                           {.blocks = depth.blocks, .bottleneck = depth.bottleneck, .official = true}));
  for (const int n : cifar_resnet_blocks())
    all.push_back(entry_v2(cifar_resnet_info("resnet" + std::to_string(6 * n + 2) + "_v2"),
                           {.blocks = {n, n, n}, .cifar = true}));
  return all;
}

}  // namespace dtrain::models
