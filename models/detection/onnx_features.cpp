// Backbone and feature pyramid of a detector's ONNX graph, as in ResNet::features() and Fpn.
#include "models/detection/onnx_parts.h"

namespace dtrain::models {
namespace {

struct Backbone {
  OnnxGraph& graph;
  OnnxLayers& layers;
  const ResNetOptions& options;

  OnnxValue conv_bn(const OnnxValue& x, const std::string& conv, const std::string& bn, int kernel, int stride) const {
    const OnnxValue y = layers.conv(x, conv, {.stride = stride, .padding = padding_of(options, kernel, stride)});
    return layers.batch_norm(y, bn, options.batch_norm.epsilon);
  }

  OnnxValue block(const OnnxValue& x, const std::string& path, int stride) const {
    const auto layer = [&](const OnnxValue& in, int i, int kernel, int step) {
      const std::string number = std::to_string(i);
      return conv_bn(in, path + ".conv" + number, path + ".bn" + number, kernel, step);
    };
    OnnxValue y;
    if (options.bottleneck) {
      y = layers.relu(layer(x, 1, 1, options.stride_in_3x3 ? 1 : stride));
      y = layers.relu(layer(y, 2, 3, options.stride_in_3x3 ? stride : 1));
      y = layer(y, 3, 1, 1);
    } else {
      y = layers.relu(layer(x, 1, 3, stride));
      y = layer(y, 2, 3, 1);
    }
    const bool changes = layers.has(path + ".downsample.0.weight");
    const OnnxValue shortcut = changes ? conv_bn(x, path + ".downsample.0", path + ".downsample.1", 1, stride) : x;
    return layers.relu(graph.add("Add", {y, shortcut}));
  }

  std::vector<OnnxValue> stages(const OnnxValue& canvas) const {
    const std::string body = "backbone.body.";
    OnnxValue x = layers.relu(conv_bn(canvas, body + "conv1", body + "bn1", 7, 2));
    x = layers.max_pool(x, {.kernel = 3, .stride = 2, .padding = padding_of(options, 3, 2)});
    std::vector<OnnxValue> results;
    for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
      for (int i = 0; i < options.blocks[stage]; ++i)
        x = block(x, body + "layer" + std::to_string(stage + 1) + "." + std::to_string(i), stage > 0 && i == 0 ? 2 : 1);
      results.push_back(x);
    }
    return results;
  }
};

// Upsamples by two; exact because the canvas is a multiple of the last stage's stride.
OnnxValue doubled(OnnxGraph& graph, const OnnxValue& x) {
  const float scales[] = {1, 1, 2, 2};
  return graph.add("Resize", {x, "", graph.floats(scales, {4})},
                   {{"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}});
}

}  // namespace

std::vector<OnnxValue> onnx_features(OnnxGraph& graph, OnnxLayers& layers, const ResNetOptions& options,
                                     const OnnxValue& canvas) {
  const std::vector<OnnxValue> stages = Backbone{graph, layers, options}.stages(canvas);
  std::vector<OnnxValue> maps(stages.size());
  OnnxValue top;
  for (size_t i = stages.size(); i-- > 0;) {
    const std::string number = std::to_string(i) + ".0";
    const OnnxValue lateral = layers.conv(stages[i], "backbone.fpn.inner_blocks." + number, {});
    top = top.empty() ? lateral : graph.add("Add", {lateral, doubled(graph, top)});
    maps[i] = layers.conv(top, "backbone.fpn.layer_blocks." + number, {.padding = 1});
  }
  maps.push_back(layers.max_pool(maps.back(), {.kernel = 1, .stride = 2, .padding = 0}));
  return maps;
}

}  // namespace dtrain::models
