// ParameterStore: name -> parameter, over flat arenas for values, gradients, optimiser state and buffers.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "libdtrain/core/context.h"

namespace dtrain {

// How a new parameter is filled. Draws depend on (seed, name, element) only.
struct Init {
  enum class Kind { constant, normal, truncated_normal, uniform } kind = Kind::constant;
  float value = 0;  // the constant, the standard deviation, or the bound of U(-value, value)

  static Init constant(float value) { return {Kind::constant, value}; }
  static Init normal(float stddev) { return {Kind::normal, stddev}; }
  // Cut at two standard deviations, as TensorFlow's.
  static Init truncated_normal(float stddev) { return {Kind::truncated_normal, stddev}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }
};

// What the numbers of a tensor mean to other programs.
enum class Layout {
  plain,
  krsc,  // a convolution's filters, [k, r, s, c / groups]; OIHW in torchvision
  flat,  // [out, h * w * c], a linear layer's weight over a flattened image; [out, c * h * w] in torchvision
};

struct ParameterOptions {
  Layout layout = Layout::plain;
  int64_t channels = 0;  // of the image that a `flat` weight reads
  bool decay = true;     // false for biases and batch-norm parameters
  bool frozen = false;   // constant: no gradient, no update
};

struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  ParameterOptions options;
  int index = 0;         // in order of registration
  int64_t offset = 0;    // elements from the start of the arenas
  Tensor value;          // view of the master arena (f32)
  Tensor compute;        // what ops read: `value` itself, or a copy by ComputeOptions
  Tensor grad;           // view of the gradient arena (f32)
  bool written = false;  // a closure has written `grad` in this backward pass
};

// What ops read of the parameters. Weights of convolutions and linear layers (rank 2 and more) have type `dtype`;
// biases and batch-norm parameters stay f32. A convolution over images of 3 channels reads `image_channels`, those
// beyond the third with weight zero: on a GPU, pixels of 16 bytes suit it.
struct ComputeOptions {
  DType dtype = DType::f32;  // f32, bf16 or f16; f32 on the CPU
  int image_channels = 3;
};

// State that training changes without a gradient: BN running statistics.
struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  int64_t offset = 0;
  Tensor value;  // view of the buffer arena (f32)
  // Training does not change it, as with a frozen batch norm: ranks and micro-steps neither sum nor rescale it.
  bool constant = false;
};

// Layers register in their constructors; `allocate` then lays the arenas out in that order, each entry
// kAlignment-aligned, and fills them. References to parameters and buffers stay valid for the life of the store.
class ParameterStore {
 public:
  explicit ParameterStore(Context& context) : context_(context) {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  Parameter& add(const std::string& name, Shape shape, Init init, ParameterOptions options = {});
  Buffer& add_buffer(const std::string& name, Shape shape, float initial);
  // Ends registration, makes the arenas and initialises them from `seed`.
  void allocate(uint64_t seed, const ComputeOptions& compute = {});

  Context& context() const { return context_; }
  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  std::deque<Buffer>& buffers() { return buffers_; }
  const std::deque<Buffer>& buffers() const { return buffers_; }
  Parameter* find(const std::string& name);
  Buffer* find_buffer(const std::string& name);
  // Scalars of trainable and frozen parameters, without padding.
  int64_t parameter_count() const;

  // The whole arenas, padding included (padding is zero and stays zero).
  const Tensor& values() const { return values_; }
  const Tensor& grads() const { return grads_; }
  const Tensor& buffer_values() const { return buffer_values_; }
  // Of ComputeOptions::dtype, laid out like values(); undefined in f32, where ops read the values themselves.
  const Tensor& compute_values() const { return compute_values_; }
  // Optimiser state arena `i`, laid out like values(), zero at first use.
  const Tensor& optimizer_state(int i);
  int optimizer_states() const { return static_cast<int>(optimizer_state_.size()); }

  // Of the images that the model reads: ComputeOptions::image_channels where convolutions read them, else 3.
  int image_channels() const { return image_channels_; }

  // Counts changes of the values by an update or a load: what a packed copy of a weight was made from.
  uint64_t version() const { return version_; }
  void touch() { ++version_; }
  // Makes all compute copies anew: to be called after values have been loaded. Counts as a change of them.
  void refresh_compute();
  // The same for the copies with padded channels alone: after an update, which writes compute_values() itself.
  void refresh_padded();

 private:
  Context& context_;
  std::deque<Parameter> parameters_;
  std::deque<Buffer> buffers_;
  std::map<std::string, size_t> by_name_, buffer_by_name_;
  Tensor values_, grads_, compute_values_, buffer_values_;
  std::vector<Parameter*> padded_;  // whose compute copy has more channels than the value
  std::vector<Tensor> optimizer_state_;
  int image_channels_ = 3;
  int64_t arena_count_ = 0, buffer_count_ = 0;
  uint64_t version_ = 0;
};

}  // namespace dtrain
