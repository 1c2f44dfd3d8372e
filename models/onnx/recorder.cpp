#include "models/onnx/recorder.h"

#include <algorithm>
#include <ranges>
#include <string_view>

#include "dtrain/ops/batch_norm.h"
#include "dtrain/ops/local_response_norm.h"
#include "dtrain/ops/subsample.h"

namespace dtrain::models {
namespace {

constexpr std::string_view kWeight = ".weight";

template <class Options>
const Options& options_of(const RecordedOp& op) {
  const auto* options = std::any_cast<Options>(&op.options);
  DT_CHECK(options, op.name, ": recorded without its options");
  return *options;
}

bool is_zero(const Tensor& x) {
  const float* const values = x.data<float>();
  return std::all_of(values, values + x.count(), [](float value) { return value == 0; });
}

OnnxAttributes normalization(const LocalResponseNormOptions& options) {
  const int64_t size = 2 * options.radius + 1;  // ONNX divides alpha by it
  return {{"size", size},
          {"alpha", options.alpha * static_cast<float>(size)},
          {"beta", options.beta},
          {"bias", options.bias}};
}

}  // namespace

OnnxRecorder::OnnxRecorder(OnnxGraph& graph, const ParameterStore& store)
    : graph_(graph), store_(store), layers_(graph, store) {}

const OnnxValue* OnnxRecorder::find(const Tensor& tensor) const {
  // A reshaped tensor aliases the memory of its source.
  for (const auto& [known, value] : std::views::reverse(values_))
    if (known.raw() == tensor.raw() && known.shape() == tensor.shape()) return &value;
  return nullptr;
}

const OnnxValue& OnnxRecorder::get(const Tensor& tensor) const {
  const OnnxValue* const found = find(tensor);
  if (!found) refuse_export(concat("a tensor ", tensor.shape(), " that the model reads comes from no op"));
  return *found;
}

std::string OnnxRecorder::path_of(const Tensor& weight) const {
  const auto found = std::ranges::find_if(
      store_.parameters(), [&](const Parameter& parameter) { return parameter.compute.raw() == weight.raw(); });
  if (found == store_.parameters().end() || !found->name.ends_with(kWeight))
    refuse_export(concat("a tensor ", weight.shape(), " that the model reads as a weight is none of its parameters"));
  return found->name.substr(0, found->name.size() - kWeight.size());
}

void OnnxRecorder::add(const RecordedOp& op) { set(op.value, node(op)); }

OnnxValue OnnxRecorder::node(const RecordedOp& op) {
  const std::string_view name = op.name;
  const auto input = [&](size_t i) { return get(op.inputs[i]->value); };
  if (name == "batch_norm") return batch_norm(op);
  if (name == "reshape") return flattened(op);
  if (name == "concat_channels") return joined(op);
  if (name == "subsample") return subsampled(op);
  if (name == "conv2d") return layers_.conv(input(0), path_of(op.inputs[1]->value), options_of<Conv2dOptions>(op));
  if (name == "linear") return layers_.linear(input(0), path_of(op.inputs[1]->value));
  if (name == "max_pool") return layers_.max_pool(input(0), options_of<PoolOptions>(op));
  if (name == "average_pool") return layers_.average_pool(input(0), options_of<PoolOptions>(op));
  if (name == "global_average_pool")
    return graph_.add("Flatten", {graph_.add("GlobalAveragePool", {input(0)})}, {{"axis", int64_t{1}}});
  if (name == "relu") return layers_.relu(input(0));
  if (name == "relu6") return relu6(input(0));
  if (name == "add") return graph_.add("Add", {input(0), input(1)});
  if (name == "local_response_norm")
    return graph_.add("LRN", {input(0)}, normalization(options_of<LocalResponseNormOptions>(op)));
  refuse_export(concat("the model has an op ", name, ", which cannot be exported"));
}

OnnxValue OnnxRecorder::batch_norm(const RecordedOp& op) {
  const auto& [options, activation] = options_of<BatchNormNote>(op);
  OnnxValue y = layers_.batch_norm(get(op.inputs[0]->value), path_of(op.inputs[1]->value), options.epsilon);
  if (op.inputs[3]->value) y = graph_.add("Add", {y, get(op.inputs[3]->value)});
  if (activation == Activation::relu6) return relu6(y);
  return activation == Activation::relu ? layers_.relu(y) : y;
}

OnnxValue OnnxRecorder::relu6(const OnnxValue& x) {
  return graph_.add("Clip", {x, graph_.scalar(0), graph_.scalar(6)});
}

OnnxValue OnnxRecorder::flattened(const RecordedOp& op) {
  const Shape &from = op.inputs[0]->shape(), &to = op.value.shape();
  if (from == to) return get(op.inputs[0]->value);
  if (to.rank() != 2 || from[0] != to[0]) refuse_export(concat("a reshape from ", from, " to ", to));
  return graph_.add("Flatten", {get(op.inputs[0]->value)}, {{"axis", int64_t{1}}});
}

// Zeros that no op has made are padding, for any batch size.
OnnxValue OnnxRecorder::joined(const RecordedOp& op) {
  std::vector<OnnxValue> parts;
  int64_t before = 0, after = 0;
  for (const Var* const input : op.inputs) {
    const Tensor& part = input->value;
    const OnnxValue* const found = find(part);
    const int64_t channels = part.dim(part.shape().rank() - 1);
    if (!found && !is_zero(part)) get(part);
    if (found && after > 0) refuse_export("channels of zeros between others");
    if (found)
      parts.push_back(*found);
    else
      (parts.empty() ? before : after) += channels;
  }
  if (parts.empty()) refuse_export("channels of zeros alone");
  const OnnxValue whole = parts.size() == 1 ? parts[0] : graph_.add("Concat", parts, {{"axis", int64_t{1}}});
  if (before + after == 0) return whole;
  return graph_.add("Pad", {whole, graph_.ints({0, before, 0, 0, 0, after, 0, 0})});
}

OnnxValue OnnxRecorder::subsampled(const RecordedOp& op) {
  const auto [stride, offset] = options_of<SubsampleOptions>(op);
  const Shape& from = op.inputs[0]->shape();
  // Pads with zeros beyond the image.
  const int64_t below = op.value.dim(1) * stride - from[1], right = op.value.dim(2) * stride - from[2];
  OnnxValue x = get(op.inputs[0]->value);
  if (below > 0 || right > 0) x = graph_.add("Pad", {x, graph_.ints({0, 0, 0, 0, 0, 0, below, right})});
  return graph_.add(
      "Slice", {x, graph_.ints({offset, offset}), graph_.ints({op.value.dim(1) * stride, op.value.dim(2) * stride}),
                graph_.ints({2, 3}), graph_.ints({stride, stride})});
}

}  // namespace dtrain::models
