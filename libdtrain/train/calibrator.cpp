#include "dtrain/train/calibrator.h"

#include <algorithm>
#include <any>

#include "dtrain/ops/conv2d.h"
#include "dtrain/ops/quantized_conv.h"

namespace dtrain {
namespace {

constexpr size_t kImages = 0, kWeights = 1, kResidual = 3;  // inputs of a layer

bool is_linear(const RecordedOp& op) { return std::string(op.name) == "linear"; }

// Ops that pass int8 tensors through unchanged.
bool is_passage(const std::string& op) { return op == "relu" || op == "max_pool" || op == "reshape"; }

// Whether int8 supports the op.
bool may_be_quantized(const RecordedOp& op) {
  if (op.inputs.size() <= kWeights) return false;
  const auto* const options = std::any_cast<Conv2dOptions>(&op.options);
  if (!is_linear(op) && !(options && options->groups == 1 && std::string(op.name) == "conv2d")) return false;
  return fits_int8(op.inputs[kWeights]->shape());
}

}  // namespace

void Calibrator::observe(Tape& tape) {
  if (names_.empty())
    for (const Parameter& parameter : store_.parameters()) names_[parameter.compute.raw()] = parameter.name;
  at_.clear();
  next_ = 0;
  ++passes_;
  tape.op_observer().on_op([this](const RecordedOp& op) { look(op); });
}

int64_t Calibrator::add(const RecordedOp& op, const Tensor& value, std::vector<int64_t> inputs) {
  const int64_t number = next_++;
  if (passes_ == 1) {
    const int rank = value.shape().rank();
    values_.push_back({op.name, std::move(inputs), nullptr, rank > 0 ? value.dim(rank - 1) : 0, {}});
  }
  DT_CHECK(number < static_cast<int64_t>(values_.size()) && values_[static_cast<size_t>(number)].op == op.name,
           "Calibrator: ", op.name, " is op ", number, " of this forward pass, but was not so in the first");
  DT_CHECK(value.dtype() == DType::f32, "Calibrator: ", op.name, " of ", value.dtype(), ", expected f32");
  values_[static_cast<size_t>(number)].range.add(value.span<float>());
  at_[value.raw()] = {number, value};
  return number;
}

int64_t Calibrator::find(const Tensor& x) const {
  const auto found = x ? at_.find(x.raw()) : at_.end();
  return found == at_.end() ? -1 : found->second.first;
}

void Calibrator::look(const RecordedOp& op) {
  const bool layer = may_be_quantized(op) && names_.contains(op.inputs[kWeights]->value.raw());
  std::vector<int64_t> inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& x = op.inputs[i]->value;
    inputs.push_back(find(x));
    if (layer && i == kImages && inputs[i] < 0) {
      static const std::any none;
      inputs[i] = add({"outside", x, {}, none}, x, {});
    }
  }
  const int64_t number = add(op, op.value, inputs);
  if (!layer || passes_ > 1) return;
  const void* const weights = op.inputs[kWeights]->value.raw();
  values_[static_cast<size_t>(number)].weights = weights;
  ++times_used_[weights];
}

bool Calibrator::is_layer(const Value& value) const { return value.weights && times_used_.at(value.weights) == 1; }

std::vector<std::vector<Calibrator::Use>> Calibrator::uses() const {
  std::vector<std::vector<Use>> all(values_.size());
  for (size_t by = 0; by < values_.size(); ++by)
    for (size_t input = 0; input < values_[by].inputs.size(); ++input)
      if (const int64_t value = values_[by].inputs[input]; value >= 0)
        all[static_cast<size_t>(value)].push_back({static_cast<int64_t>(by), input});
  return all;
}

// Whether all readers of a value accept int8 with this zero point.
bool Calibrator::takes_bytes(const std::vector<std::vector<Use>>& uses, int64_t value, uint8_t zero) const {
  const auto& own = uses[static_cast<size_t>(value)];
  return !own.empty() && std::ranges::all_of(own, [&](const Use& use) {
    const Value& by = values_[static_cast<size_t>(use.by)];
    if (is_layer(by)) {
      return (use.input == kImages && may_be_bytes(values_[static_cast<size_t>(value)].channels)) ||
             use.input == kResidual;
    }
    return is_passage(by.op) && (by.op != "relu" || zero == 0) && takes_bytes(uses, use.by, zero);
  });
}

QuantParams Calibrator::form_of(const std::vector<std::vector<Use>>& uses, int64_t value, RangeRule rule) const {
  const auto& own = uses[static_cast<size_t>(value)];
  const auto& values = values_;
  const bool closed = !own.empty() && std::ranges::all_of(own, [&](const Use& use) {
    return values[static_cast<size_t>(use.by)].op == "relu";
  });
  return values[static_cast<size_t>(closed ? own.front().by : value)].range.form(rule, closed);
}

Calibrator::Forms Calibrator::forms(RangeRule rule) const {
  const auto used = uses();
  Forms forms(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    if (is_layer(values_[i])) {
      const QuantParams form = form_of(used, number, rule);
      if (takes_bytes(used, number, form.zero)) forms[i] = form;
    } else if (is_passage(values_[i].op) && values_[i].inputs.at(0) >= 0) {
      forms[i] = forms[static_cast<size_t>(values_[i].inputs[0])];
    }
  }
  return forms;
}

NamedLayers Calibrator::layers(RangeRule rule) const {
  DT_CHECK(passes_ > 0, "Calibrator: no forward pass was observed");
  const Forms known = forms(rule);
  NamedLayers layers;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!is_layer(values_[i])) continue;
    const auto images = static_cast<size_t>(values_[i].inputs[kImages]);
    QuantizedLayer layer{known[images] ? *known[images] : values_[images].range.form(rule), {}, known[i]};
    if (values_[i].inputs.size() > kResidual && values_[i].inputs[kResidual] >= 0)
      layer.residual = known[static_cast<size_t>(values_[i].inputs[kResidual])];
    layers[names_.at(values_[i].weights)] = layer;
  }
  DT_CHECK(!layers.empty(), "Calibrator: the model has no layer that int8 supports");
  return layers;
}

QuantizedLayers layers_of(const NamedLayers& layers, const ParameterStore& store) {
  QuantizedLayers result;
  for (const Parameter& parameter : store.parameters())
    if (const auto found = layers.find(parameter.name); found != layers.end())
      result[parameter.compute.raw()] = found->second;
  DT_CHECK(result.size() == layers.size(), "int8: of ", layers.size(), " layers the model has ", result.size());
  return result;
}

}  // namespace dtrain
