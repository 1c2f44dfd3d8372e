// Parameter and Buffer: what a ParameterStore holds under a name, and what is asked for when they are registered.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "libdtrain/core/tensor.h"

namespace dtrain {

class ParameterStore;

// How a new parameter is filled. Draws depend on (seed, name, element) only.
struct Init {
  // A parameter with `unset` is refused: a weight that begins at 0 by oversight never trains. Layers that have a usual
  // choice take it in place of `unset`.
  enum class Kind { unset, constant, normal, truncated_normal, uniform } kind = Kind::unset;
  float value = 0;  // the constant, the standard deviation, or the bound of U(-value, value)

  bool is_set() const { return kind != Kind::unset; }

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

// What the optimiser's numbers are multiplied by for one parameter: not negative, and finite.
struct Multipliers {
  float rate = 1;          // multiplies the learning rate
  float weight_decay = 1;  // multiplies the weight decay, where ParameterOptions::decay is set
  bool operator==(const Multipliers&) const = default;
};

struct ParameterOptions {
  Layout layout = Layout::plain;
  int64_t channels = 0;  // those of the image that a `flat` weight reads
  bool decay = true;     // false for biases and batch-norm parameters
  bool frozen = false;   // constant: no gradient, no update
  Multipliers multipliers{};
};

struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  int index = 0;         // in order of registration
  int64_t offset = 0;    // elements from the start of the arenas
  Tensor value;          // view of the master arena (f32)
  Tensor compute;        // what ops read: `value` itself, or a copy by ComputeOptions
  Tensor grad;           // view of the gradient arena (f32), if there is one
  bool written = false;  // a closure has written `grad` in this backward pass

  // Changed by the store alone, which counts the changes.
  const ParameterOptions& options() const { return options_; }
  const std::weak_ptr<const void>& lifetime() const { return lifetime_; }  // the store's

 private:
  friend class ParameterStore;
  ParameterOptions options_;
  std::weak_ptr<const void> lifetime_;
};

// State that training changes without a gradient: the running statistics of batch norm.
struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  int64_t offset = 0;
  Tensor value;  // view of the buffer arena (f32)

  // No step writes it. Changed by the store alone, which counts the changes.
  bool constant() const { return constant_; }
  const std::weak_ptr<const void>& lifetime() const { return lifetime_; }  // the store's

 private:
  friend class ParameterStore;
  bool constant_ = false;
  std::weak_ptr<const void> lifetime_;
};

// A parameter or a buffer of a store, or none, as layers hold it. Once the store is destroyed its use throws Error.
template <class Entry>
class StoreRef {
 public:
  StoreRef() = default;
  StoreRef(std::nullptr_t) {}                                               // NOLINT(google-explicit-constructor)
  StoreRef(Entry* entry) : entry_(entry), lifetime_(lifetime_of(entry)) {}  // NOLINT(google-explicit-constructor)

  operator Entry*() const {  // NOLINT(google-explicit-constructor): it stands for the pointer
    DT_CHECK(entry_ == nullptr || !lifetime_.expired(),
             "a layer is used after its ParameterStore has been destroyed; expected a store that outlives the model");
    return entry_;
  }
  Entry& operator*() const { return *static_cast<Entry*>(*this); }
  Entry* operator->() const { return *this; }

 private:
  static std::weak_ptr<const void> lifetime_of(const Entry* entry) {
    return entry == nullptr ? std::weak_ptr<const void>() : entry->lifetime();
  }

  Entry* entry_ = nullptr;
  std::weak_ptr<const void> lifetime_;
};
using ParameterRef = StoreRef<Parameter>;
using BufferRef = StoreRef<Buffer>;

// Which parameters and buffers are meant: those whose names begin with a prefix ("layer1.", "" for all of them), or
// those whose names a predicate accepts.
class NameFilter {
 public:
  NameFilter(const char* prefix) : NameFilter(std::string(prefix)) {}
  NameFilter(const std::string& prefix)
      : accepts_([prefix](const std::string& name) { return name.starts_with(prefix); }),
        text_("begins with '" + prefix + "'") {}
  template <std::predicate<const std::string&> Predicate>
  NameFilter(Predicate predicate) : accepts_(std::move(predicate)), text_("the predicate accepts") {}

  bool accepts(const std::string& name) const { return accepts_(name); }
  const std::string& text() const { return text_; }  // "begins with 'layer1.'"

 private:
  std::function<bool(const std::string&)> accepts_;
  std::string text_;
};

}  // namespace dtrain
