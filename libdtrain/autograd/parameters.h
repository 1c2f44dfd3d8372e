// ParameterStore: name -> parameter, over flat arenas for values, gradients, optimiser state and buffers.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameter.h"
#include "libdtrain/core/context.h"

namespace dtrain {

// What ops read of the parameters. Weights of convolutions and linear layers (rank 2 and more) have type `dtype`;
// biases and batch-norm parameters stay f32. A convolution over images of 3 channels reads `image_channels`, those
// beyond the third with weight zero: on a GPU, pixels of 16 bytes suit it.
struct ComputeOptions {
  DType dtype = DType::f32;  // f32, bf16 or, on a GPU, f16
  int image_channels = 3;
  bool gradients = true;  // false, for inference alone: half the memory, and what needs a gradient throws
};

// Layers register in their constructors; `allocate` then lays the arenas out in that order, each entry
// kAlignment-aligned, and fills them. References to parameters and buffers stay valid for the life of the store.
class ParameterStore {
 public:
  explicit ParameterStore(Context& context)
      : context_(context,
                 "a ParameterStore is used after its Context has been destroyed; expected one that outlives it") {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  Parameter& add(const std::string& name, Shape shape, Init init, ParameterOptions options = {});
  Buffer& add_buffer(const std::string& name, Shape shape, float initial, bool constant = false);
  // Ends registration, makes the arenas and initialises them from `seed`.
  void allocate(uint64_t seed, const ComputeOptions& compute = {});

  // Parameters of these names are trained no more, and batch norms whose running statistics are among them use and keep
  // those in training too; `unfreeze` takes both back. `set_multipliers` is what parameter groups are elsewhere. All
  // three count from the next forward pass and the next update on, whenever they are called. They throw where no name
  // is accepted, so that a misspelt one does not pass unnoticed.
  void freeze(const NameFilter& names) { set_frozen(names, true); }
  void unfreeze(const NameFilter& names) { set_frozen(names, false); }
  void set_multipliers(const NameFilter& names, const Multipliers& multipliers);
  // Grows with each change that those have made: what was planned or recorded before is out of date.
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
  // Scalars of trainable and frozen parameters, without padding.
  int64_t parameter_count() const;

  // The whole arenas, padding included (padding is zero and stays zero). Before allocate() there are none: all that
  // needs one throws.
  const Tensor& values() const { return laid_out(values_, "values()"); }
  const Tensor& grads() const {
    DT_CHECK(!allocated() || has_gradients(), "grads(): allocated without gradients, for inference alone");
    return laid_out(grads_, "grads()");
  }
  const Tensor& buffer_values() const { return laid_out(buffer_values_, "buffer_values()"); }
  // The values in ComputeOptions::dtype, laid out like values(); undefined for f32, where ops read those themselves.
  const Tensor& compute_values() const { return laid_out(compute_values_, "compute_values()"); }
  // Optimiser state arena `i`, laid out like values(), zero at first use.
  const Tensor& optimizer_state(int i);
  int optimizer_states() const { return static_cast<int>(optimizer_state_.size()); }

  // The channels of the images that the model reads: ComputeOptions::image_channels where convolutions read them,
  // else 3.
  int image_channels() const { return image_channels_; }

  // Counts changes of the values by an update or a load: what a packed copy of a weight was made from.
  uint64_t version() const { return version_; }
  void touch() { ++version_; }
  // Makes all compute copies anew: to be called after values have been loaded. Counts as a change of them.
  void refresh_compute();
  // The same for the copies with padded channels alone: after an update, which writes compute_values() itself.
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
  std::string prefix_;  // put before the names to be registered
  Tensor values_, grads_, compute_values_, buffer_values_;
  std::vector<Parameter*> padded_;  // whose compute copy has more channels than the value
  std::vector<Tensor> optimizer_state_;
  int image_channels_ = 3;
  int64_t arena_count_ = 0, buffer_count_ = 0;
  uint64_t version_ = 0, layout_version_ = 0;
  Lifetime lifetime_;
};

// Puts `prefix` before the names of what is registered while it lives, so that a store can hold several models:
// ParameterScope scope(store, "teacher."). Scopes nest: the outer prefix comes first.
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
