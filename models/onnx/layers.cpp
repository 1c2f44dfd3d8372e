#include "models/onnx/layers.h"

#include <algorithm>

#include "dtrain/train/weights.h"

namespace dtrain::models {
namespace {

using Ints = std::vector<int64_t>;

Ints strides_of(const Size2& stride) { return {stride.h, stride.w}; }
Ints pads_of(const Padding& padding) { return {padding.top, padding.left, padding.bottom, padding.right}; }

OnnxAttributes windows_of(const PoolOptions& options) {
  return {{"kernel_shape", strides_of(options.kernel)},
          {"strides", strides_of(options.stride)},
          {"pads", pads_of(options.padding)}};
}

}  // namespace

const Parameter* OnnxLayers::find(const std::string& name) const {
  const auto found = std::ranges::find(store_.parameters(), name, &Parameter::name);
  return found == store_.parameters().end() ? nullptr : &*found;
}

const Parameter& OnnxLayers::parameter(const std::string& name) const {
  const Parameter* const found = find(name);
  if (!found) refuse_export("the model has no parameter " + name + ", so that it is of a kind that cannot be exported");
  return *found;
}

OnnxValue OnnxLayers::weight(const std::string& name) { return weight(name, torch_shape(parameter(name))); }

OnnxValue OnnxLayers::weight(const std::string& name, const Shape& shape) {
  const Parameter& found = parameter(name);
  used_.insert(name);
  if (graph_.has_constant(name)) return name;
  return graph_.floats(torch_values(store_, found), shape, name);
}

OnnxValue OnnxLayers::buffer(const std::string& name) {
  const auto found = std::ranges::find(store_.buffers(), name, &Buffer::name);
  if (found == store_.buffers().end()) refuse_export("the model has no buffer " + name);
  used_.insert(name);
  std::vector<float> values(static_cast<size_t>(found->shape.count()));
  store_.context().download(found->value, values.data(), "exporting weights");
  return graph_.floats(values, found->shape, name);
}

std::vector<OnnxValue> OnnxLayers::inputs(const OnnxValue& x, const std::string& path) {
  std::vector<OnnxValue> all = {x, weight(path + ".weight")};
  if (has(path + ".bias")) all.push_back(weight(path + ".bias"));
  return all;
}

OnnxValue OnnxLayers::conv(const OnnxValue& x, const std::string& path, const Conv2dOptions& options) {
  return graph_.add("Conv", inputs(x, path),
                    {{"strides", strides_of(options.stride)},
                     {"pads", pads_of(options.padding)},
                     {"dilations", strides_of(options.dilation)},
                     {"group", int64_t{options.groups}}});
}

OnnxValue OnnxLayers::conv_transpose(const OnnxValue& x, const std::string& path, const Conv2dOptions& options) {
  return graph_.add("ConvTranspose", inputs(x, path),
                    {{"strides", strides_of(options.stride)}, {"pads", pads_of(options.padding)}});
}

OnnxValue OnnxLayers::batch_norm(const OnnxValue& x, const std::string& path, float epsilon) {
  return graph_.add("BatchNormalization",
                    {x, weight(path + ".weight"), weight(path + ".bias"), buffer(path + ".running_mean"),
                     buffer(path + ".running_var")},
                    {{"epsilon", epsilon}});
}

// Opset 17 has instance normalisation only: groups are reshaped to channels of one row.
OnnxValue OnnxLayers::group_norm(const OnnxValue& x, const std::string& path, const Shape& chw, int groups,
                                 float epsilon) {
  const std::vector<float> ones(static_cast<size_t>(groups), 1.0f), zeros(static_cast<size_t>(groups), 0.0f);
  constexpr int64_t kAsItIs = 0;
  const OnnxValue rows = graph_.add("Reshape", {x, graph_.ints({kAsItIs, groups, chw.count() / groups})});
  const OnnxValue normal =
      graph_.add("InstanceNormalization", {rows, graph_.floats(ones, {groups}), graph_.floats(zeros, {groups})},
                 {{"epsilon", epsilon}});
  const OnnxValue image = graph_.add("Reshape", {normal, graph_.ints({kAsItIs, chw[0], chw[1], chw[2]})});
  const OnnxValue scaled = graph_.add("Mul", {image, weight(path + ".weight", {chw[0], 1, 1})});
  return graph_.add("Add", {scaled, weight(path + ".bias", {chw[0], 1, 1})});
}

OnnxValue OnnxLayers::linear(const OnnxValue& x, const std::string& path) {
  return graph_.add("Gemm", inputs(x, path), {{"transB", int64_t{1}}});
}

OnnxValue OnnxLayers::max_pool(const OnnxValue& x, const PoolOptions& options) {
  return graph_.add("MaxPool", {x}, windows_of(options));
}

OnnxValue OnnxLayers::average_pool(const OnnxValue& x, const PoolOptions& options) {
  OnnxAttributes attributes = windows_of(options);
  attributes.push_back({"count_include_pad", int64_t{options.count_padding}});
  return graph_.add("AveragePool", {x}, attributes);
}

void OnnxLayers::require_all_used() const {
  const auto require = [this](const std::string& name) {
    if (!used_.contains(name)) refuse_export(name + " is of a layer that cannot be exported");
  };
  for (const Parameter& one : store_.parameters()) require(one.name);
  for (const Buffer& one : store_.buffers()) require(one.name);
}

}  // namespace dtrain::models
