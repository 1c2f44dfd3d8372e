#include "dtrain/autograd/parameters.h"

#include <cmath>

#include "dtrain/core/rng.h"
#include "libdtrain/ops/compute_copy.h"

namespace dtrain {
namespace {

// f32 elements per kAlignment bytes.
constexpr int64_t kStep = kAlignment / sizeof(float);

int64_t padded(int64_t count) { return (count + kStep - 1) / kStep * kStep; }

// FNV-1a: the RNG stream of a parameter depends on its name only, not on other layers.
uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

std::vector<float> initial_values(const Parameter& parameter, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(parameter.shape.count()));
  const Init init = parameter.init;
  RandomStream random(seed, hash_of(parameter.name));
  for (float& value : values) {
    switch (init.kind) {
      case Init::Kind::unset:  // rejected by ParameterStore::add
      case Init::Kind::constant:
        value = init.value;
        break;
      case Init::Kind::normal:
        value = init.value * random.normal();
        break;
      case Init::Kind::uniform:
        value = random.uniform(-init.value, init.value);
        break;
      case Init::Kind::truncated_normal: {
        float draw = random.normal();
        while (std::abs(draw) > 2) draw = random.normal();
        value = init.value * draw;
        break;
      }
    }
  }
  return values;
}

constexpr int kImageChannels = 3;

bool reads_images(const Parameter& parameter) {
  return parameter.options().layout == Layout::krsc && parameter.shape[3] == kImageChannels;
}

void check_multipliers(const std::string& whose, const Multipliers& multipliers) {
  for (const float multiplier : {multipliers.rate, multipliers.weight_decay})
    DT_CHECK(multiplier >= 0 && std::isfinite(multiplier), whose, ": a learning rate multiplied by ", multipliers.rate,
             " and a weight decay by ", multipliers.weight_decay, "; expected finite numbers that are not negative");
}

void check_options(const std::string& name, const Shape& shape, const ParameterOptions& options) {
  DT_CHECK(options.layout != Layout::krsc || shape.rank() == 4, "parameter ", name, ": filters of shape ", shape,
           ", expected [k, r, s, c / groups]");
  DT_CHECK(
      options.layout != Layout::flat || (shape.rank() == 2 && options.channels > 0 && shape[1] % options.channels == 0),
      "parameter ", name, ": a weight of shape ", shape, " over an image of ", options.channels,
      " channels, expected [out, h * w * channels]");
  check_multipliers("parameter " + name, options.multipliers);
}

template <class Entries>
size_t lookup(const std::map<std::string, size_t>& names, const std::string& name, const Entries& entries) {
  auto it = names.find(name);
  return it == names.end() ? entries.size() : it->second;
}

}  // namespace

Parameter& ParameterStore::add(const std::string& own_name, Shape shape, Init init, ParameterOptions options) {
  const std::string name = prefix_ + own_name;
  DT_CHECK(!allocated(), "parameter ", name, ": registered after allocate()");
  DT_CHECK(!by_name_.contains(name) && !buffer_by_name_.contains(name), "parameter ", name, ": registered twice");
  DT_CHECK(init.is_set(), "parameter ", name,
           ": no initialisation; expected Init::normal(), uniform() or the like, or Init::constant(0) for zeros");
  check_options(name, shape, options);
  by_name_[name] = parameters_.size();
  Parameter& parameter = parameters_.emplace_back();
  parameter.name = name;
  parameter.shape = shape;
  parameter.init = init;
  parameter.options_ = options;
  parameter.lifetime_ = lifetime();
  parameter.index = static_cast<int>(parameters_.size()) - 1;
  parameter.offset = arena_count_;
  arena_count_ += padded(shape.count());
  return parameter;
}

Buffer& ParameterStore::add_buffer(const std::string& own_name, Shape shape, float initial, bool constant) {
  const std::string name = prefix_ + own_name;
  DT_CHECK(!allocated(), "buffer ", name, ": registered after allocate()");
  DT_CHECK(!by_name_.contains(name) && !buffer_by_name_.contains(name), "buffer ", name, ": registered twice");
  buffer_by_name_[name] = buffers_.size();
  Buffer& buffer = buffers_.emplace_back();
  buffer.name = name;
  buffer.shape = shape;
  buffer.initial = initial;
  buffer.offset = buffer_count_;
  buffer.constant_ = constant;
  buffer.lifetime_ = lifetime();
  buffer_count_ += padded(shape.count());
  return buffer;
}

void ParameterStore::allocate(uint64_t seed, const ComputeOptions& compute) {
  DT_CHECK(!allocated(), "allocate() called twice");
  const bool f32 = compute.dtype == DType::f32;
  DT_CHECK(f32 || compute.dtype == DType::bf16 || (!context_->is_cpu() && compute.dtype == DType::f16), "compute in ",
           compute.dtype, " on ", context_->device(), ": a CPU computes in f32 or bf16, a GPU in f16 as well");
  DT_CHECK(compute.image_channels >= kImageChannels, "images of ", compute.image_channels, " channels");
  if (!f32 && context_->is_cpu() && context_->isa() < CpuIsa::avx512_bf16)
    context_->notices().push_back(concat("bf16 on ", name_of(context_->isa()),
                                         " saves memory but is slower than f32: fast bf16 GEMM needs avx512_bf16"));
  // Strong guarantee: if memory runs out here, nothing is allocated and the caller may retry.
  const Tensor values = context_->zeros({arena_count_});
  const Tensor grads = compute.gradients ? context_->zeros({arena_count_}) : Tensor();
  const Tensor compute_values = f32 ? Tensor() : context_->zeros({arena_count_}, compute.dtype);
  const Tensor buffer_values = context_->zeros({buffer_count_});
  padded_.clear();
  for (Parameter& parameter : parameters_) {
    const int64_t end = parameter.offset + parameter.shape.count();
    parameter.value = values.slice(parameter.offset, end).view(parameter.shape);
    parameter.grad = grads ? grads.slice(parameter.offset, end).view(parameter.shape) : Tensor();
    const bool copied = !f32 && parameter.shape.rank() >= 2;
    parameter.compute = copied ? compute_values.slice(parameter.offset, end).view(parameter.shape) : parameter.value;
    if (compute.image_channels > kImageChannels && reads_images(parameter)) {
      const Shape& krsc = parameter.shape;
      parameter.compute = context_->zeros({krsc[0], krsc[1], krsc[2], compute.image_channels}, compute.dtype);
      padded_.push_back(&parameter);
      image_channels_ = compute.image_channels;
    }
    context_->upload(initial_values(parameter, seed).data(), parameter.value);
  }
  for (Buffer& buffer : buffers_) {
    buffer.value = buffer_values.slice(buffer.offset, buffer.offset + buffer.shape.count()).view(buffer.shape);
    context_->upload(std::vector<float>(static_cast<size_t>(buffer.shape.count()), buffer.initial).data(),
                     buffer.value);
  }
  values_ = values;
  grads_ = grads;
  compute_values_ = compute_values;
  buffer_values_ = buffer_values;
  refresh_compute();
}

void ParameterStore::set_frozen(const NameFilter& names, bool frozen) {
  bool known = false, changed = false;
  for (Parameter& parameter : parameters_) {
    if (!names.accepts(parameter.name)) continue;
    known = true;
    if (parameter.options_.frozen == frozen) continue;
    parameter.options_.frozen = frozen;
    changed = true;
    if (frozen && parameter.grad) context_->fill_zero(parameter.grad);  // no backward pass writes it from now on
  }
  for (Buffer& buffer : buffers_) {
    if (!names.accepts(buffer.name)) continue;
    known = true;
    changed |= buffer.constant_ != frozen;
    buffer.constant_ = frozen;
  }
  DT_CHECK(known, frozen ? "freeze" : "unfreeze", ": there is no parameter and no buffer whose name ", names.text());
  if (changed) ++layout_version_;
}

void ParameterStore::set_multipliers(const NameFilter& names, const Multipliers& multipliers) {
  check_multipliers("set_multipliers", multipliers);
  bool known = false, changed = false;
  for (Parameter& parameter : parameters_) {
    if (!names.accepts(parameter.name)) continue;
    known = true;
    changed |= parameter.options_.multipliers != multipliers;
    parameter.options_.multipliers = multipliers;
  }
  DT_CHECK(known, "set_multipliers: there is no parameter whose name ", names.text());
  if (changed) ++layout_version_;
}

void ParameterStore::refresh_compute() {
  if (compute_values()) round_values(*context_, values_, compute_values_);
  refresh_padded();
  touch();
}

void ParameterStore::refresh_padded() {
  for (const Parameter* parameter : padded_) pad_channels(*context_, parameter->value, parameter->compute);
}

Parameter* ParameterStore::find(const std::string& name) {
  const size_t i = lookup(by_name_, name, parameters_);
  return i < parameters_.size() ? &parameters_[i] : nullptr;
}

Buffer* ParameterStore::find_buffer(const std::string& name) {
  const size_t i = lookup(buffer_by_name_, name, buffers_);
  return i < buffers_.size() ? &buffers_[i] : nullptr;
}

int64_t ParameterStore::parameter_count() const {
  int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.shape.count();
  return total;
}

const Tensor& ParameterStore::optimizer_state(int i) {
  const Shape shape = laid_out(values_, "optimizer_state()").shape();
  DT_CHECK(i >= 0, "optimizer_state(", i, "): expected 0 or more");
  while (optimizer_states() <= i) optimizer_state_.push_back(context_->zeros(shape));
  return optimizer_state_[static_cast<size_t>(i)];
}

}  // namespace dtrain
