#include "libdtrain/autograd/parameters.h"

#include <cstring>

#include "libdtrain/core/rng.h"
#include "libdtrain/ops/compute_copy.h"

namespace dtrain {
namespace {

// Elements per kAlignment bytes of f32.
constexpr int64_t kStep = kAlignment / sizeof(float);

int64_t padded(int64_t count) { return (count + kStep - 1) / kStep * kStep; }

// FNV-1a: the RNG stream of a parameter is a function of its name, so that a model's other layers do not change it.
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
  return parameter.options.layout == Layout::krsc && parameter.shape[3] == kImageChannels;
}

template <class Entries>
size_t lookup(const std::map<std::string, size_t>& names, const std::string& name, const Entries& entries) {
  auto it = names.find(name);
  return it == names.end() ? entries.size() : it->second;
}

}  // namespace

Parameter& ParameterStore::add(const std::string& name, Shape shape, Init init, ParameterOptions options) {
  DT_CHECK(!values_, "parameter ", name, ": registered after allocate()");
  DT_CHECK(!by_name_.contains(name) && !buffer_by_name_.contains(name), "parameter ", name, ": registered twice");
  by_name_[name] = parameters_.size();
  Parameter& parameter = parameters_.emplace_back();
  parameter.name = name;
  parameter.shape = shape;
  parameter.init = init;
  parameter.options = options;
  parameter.index = static_cast<int>(parameters_.size()) - 1;
  parameter.offset = arena_count_;
  arena_count_ += padded(shape.count());
  return parameter;
}

Buffer& ParameterStore::add_buffer(const std::string& name, Shape shape, float initial) {
  DT_CHECK(!values_, "buffer ", name, ": registered after allocate()");
  DT_CHECK(!by_name_.contains(name) && !buffer_by_name_.contains(name), "buffer ", name, ": registered twice");
  buffer_by_name_[name] = buffers_.size();
  buffers_.push_back({.name = name, .shape = shape, .initial = initial, .offset = buffer_count_, .value = {}});
  buffer_count_ += padded(shape.count());
  return buffers_.back();
}

void ParameterStore::allocate(uint64_t seed, const ComputeOptions& compute) {
  DT_CHECK(!values_, "allocate() called twice");
  const bool f32 = compute.dtype == DType::f32;
  DT_CHECK(f32 || (!context_.is_cpu() && (compute.dtype == DType::bf16 || compute.dtype == DType::f16)), "compute in ",
           compute.dtype, " on ", context_.device(), ": a CPU computes in f32, a GPU in f32, bf16 or f16");
  DT_CHECK(compute.image_channels >= kImageChannels, "images of ", compute.image_channels, " channels");
  values_ = context_.zeros({arena_count_});
  grads_ = context_.zeros({arena_count_});
  if (!f32) compute_values_ = context_.zeros({arena_count_}, compute.dtype);
  buffer_values_ = context_.zeros({buffer_count_});
  for (Parameter& parameter : parameters_) {
    const int64_t end = parameter.offset + parameter.shape.count();
    parameter.value = values_.slice(parameter.offset, end).view(parameter.shape);
    parameter.grad = grads_.slice(parameter.offset, end).view(parameter.shape);
    const bool copied = !f32 && parameter.shape.rank() >= 2;
    parameter.compute = copied ? compute_values_.slice(parameter.offset, end).view(parameter.shape) : parameter.value;
    if (compute.image_channels > kImageChannels && reads_images(parameter)) {
      const Shape& krsc = parameter.shape;
      parameter.compute = context_.zeros({krsc[0], krsc[1], krsc[2], compute.image_channels}, compute.dtype);
      padded_.push_back(&parameter);
      image_channels_ = compute.image_channels;
    }
    context_.upload(initial_values(parameter, seed).data(), parameter.value);
  }
  for (Buffer& buffer : buffers_) {
    buffer.value = buffer_values_.slice(buffer.offset, buffer.offset + buffer.shape.count()).view(buffer.shape);
    context_.upload(std::vector<float>(static_cast<size_t>(buffer.shape.count()), buffer.initial).data(), buffer.value);
  }
  refresh_compute();
}

void ParameterStore::refresh_compute() {
  if (compute_values_) round_values(context_, values_, compute_values_);
  refresh_padded();
  touch();
}

void ParameterStore::refresh_padded() {
  for (const Parameter* parameter : padded_) pad_channels(context_, parameter->value, parameter->compute);
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
  DT_CHECK(values_.defined(), "optimizer_state() before allocate()");
  while (optimizer_states() <= i) optimizer_state_.push_back(context_.zeros({arena_count_}));
  return optimizer_state_[static_cast<size_t>(i)];
}

}  // namespace dtrain
