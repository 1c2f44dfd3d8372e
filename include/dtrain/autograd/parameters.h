// ParameterStore: named parameters over flat arenas of values, gradients, optimiser state and buffers.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "dtrain/autograd/parameter.h"
#include "dtrain/core/context.h"

namespace dtrain {

// Compute copies of parameters, read by ops. Weights of convolutions and linear layers (rank 2 and more) have type
// `dtype`; biases and batch-norm parameters stay f32. A convolution over RGB images reads `image_channels` channels,
// padded with zero weights: GPUs prefer pixels of 16 bytes.
struct ComputeOptions {
  DType dtype = DType::f32;  // f32, bf16 or, on a GPU, f16
  int image_channels = 3;
  bool gradients = true;  // false: inference only, without gradient arena; backward throws
};

// Layers register parameters in their constructors; allocate() lays out the arenas in that order, each entry
// kAlignment-aligned, and initialises them. References to entries stay valid for the life of the store.
class ParameterStore {
 public:
  explicit ParameterStore(Context& context)
      : context_(context,
                 "a ParameterStore is used after its Context has been destroyed; expected one that outlives it") {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  Parameter& add(const std::string& name, Shape shape, Init init, ParameterOptions options = {});
  Buffer& add_buffer(const std::string& name, Shape shape, float initial, bool constant = false);
  // Ends registration, allocates the arenas and initialises them from `seed`.
  void allocate(uint64_t seed, const ComputeOptions& compute = {});

  // freeze() stops training of the named parameters; batch norms with frozen running statistics normalise with them, in
  // training too. unfreeze() reverts it. set_multipliers() corresponds to parameter groups elsewhere. All three may be
  // called at any time and apply from the next forward pass and update. They throw if no name matches.
  void freeze(const NameFilter& names) { set_frozen(names, true); }
  void unfreeze(const NameFilter& names) { set_frozen(names, false); }
  void set_multipliers(const NameFilter& names, const Multipliers& multipliers);
  // Incremented by each of these changes, which invalidate plans and captured steps.
  uint64_t layout_version() const { return layout_version_; }

  bool allocated() const { return values_.defined(); }
  bool has_gradients() const { return grads_.defined(); }
  Context& context() const { return *context_; }
  // For a CheckedRef.
  std::weak_ptr<const void> lifetime() const { return lifetime_.watch(); }
  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  std::deque<Buffer>& buffers() { return buffers_; }
  const std::deque<Buffer>& buffers() const { return buffers_; }
  Parameter* find(const std::string& name);
  Buffer* find_buffer(const std::string& name);
  // Scalars of all parameters, frozen ones included, without padding.
  int64_t parameter_count() const;

  // Whole arenas, including padding, which stays zero. They throw before allocate().
  const Tensor& values() const { return laid_out(values_, "values()"); }
  const Tensor& grads() const {
    DT_CHECK(!allocated() || has_gradients(), "grads(): the store was allocated without gradients");
    return laid_out(grads_, "grads()");
  }
  const Tensor& buffer_values() const { return laid_out(buffer_values_, "buffer_values()"); }
  // Compute copies in ComputeOptions::dtype, laid out like values(); undefined for f32, where ops read the values.
  const Tensor& compute_values() const { return laid_out(compute_values_, "compute_values()"); }
  // Optimiser state arena `i`, laid out like values(), initially zero.
  const Tensor& optimizer_state(int i);
  int optimizer_states() const { return static_cast<int>(optimizer_state_.size()); }

  // Channels of the model's input images: ComputeOptions::image_channels if a convolution reads padded images, else 3.
  int image_channels() const { return image_channels_; }

  // Incremented when an update or a load changes values; invalidates packed copies of weights.
  uint64_t version() const { return version_; }
  void touch() { ++version_; }
  // Recomputes all compute copies: call after loading values. Increments version().
  void refresh_compute();
  // Recomputes only copies with padded channels: after an update, which writes compute_values() itself.
  void refresh_padded();

 private:
  friend class ParameterScope;
  const Tensor& laid_out(const Tensor& arena, const char* what) const {
    DT_CHECK(allocated(), what, " before allocate()");
    return arena;
  }
  void set_frozen(const NameFilter& names, bool frozen);

  CheckedRef<Context> context_;
  std::deque<Parameter> parameters_;
  std::deque<Buffer> buffers_;
  std::map<std::string, size_t> by_name_, buffer_by_name_;
  std::string prefix_;  // of names to be registered
  Tensor values_, grads_, compute_values_, buffer_values_;
  std::vector<Parameter*> padded_;  // parameters whose compute copies have padded channels
  std::vector<Tensor> optimizer_state_;
  int image_channels_ = 3;
  int64_t arena_count_ = 0, buffer_count_ = 0;
  uint64_t version_ = 0, layout_version_ = 0;
  Lifetime lifetime_;
};

// Adds `prefix` to the names registered during its lifetime, so that a store can hold several models: ParameterScope
// scope(store, "teacher."). Scopes nest, the outer prefix first.
class ParameterScope {
 public:
  ParameterScope(ParameterStore& store, const std::string& prefix)
      : store_(store), outer_length_(store.prefix_.size()) {
    store.prefix_ += prefix;
  }
  ~ParameterScope() { store_.prefix_.resize(outer_length_); }
  ParameterScope(const ParameterScope&) = delete;
  ParameterScope& operator=(const ParameterScope&) = delete;

 private:
  ParameterStore& store_;
  size_t outer_length_;
};

}  // namespace dtrain
