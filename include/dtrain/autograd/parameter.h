// Parameter and Buffer: named entries of a ParameterStore, and the options of their registration.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "dtrain/core/tensor.h"

namespace dtrain {

class ParameterStore;

// Initialisation of a parameter. Random values depend on (seed, name, element) only.
struct Init {
  // Parameters with `unset` are refused, since a weight that stays 0 by oversight never trains. Layers replace `unset`
  // by their default.
  enum class Kind { unset, constant, normal, truncated_normal, uniform } kind = Kind::unset;
  float value = 0;  // the constant, the standard deviation, or the bound of U(-value, value)

  bool is_set() const { return kind != Kind::unset; }

  static Init constant(float value) { return {Kind::constant, value}; }
  static Init normal(float stddev) { return {Kind::normal, stddev}; }
  // Truncated at two standard deviations, as in TensorFlow.
  static Init truncated_normal(float stddev) { return {Kind::truncated_normal, stddev}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }
};

// Memory layout of a tensor, for conversion to other frameworks.
enum class Layout {
  plain,
  krsc,  // convolution filters [k, r, s, c / groups]; OIHW in torchvision
  flat,  // linear weight over a flattened image, [out, h * w * c]; [out, c * h * w] in torchvision
};

// Per-parameter factors of the optimiser's settings: non-negative and finite.
struct Multipliers {
  float rate = 1;          // of the learning rate
  float weight_decay = 1;  // of the weight decay, if ParameterOptions::decay is set
  bool operator==(const Multipliers&) const = default;
};

struct ParameterOptions {
  Layout layout = Layout::plain;
  int64_t channels = 0;  // channels of the image that a `flat` weight reads
  bool decay = true;     // weight decay; false for biases and batch-norm parameters
  bool frozen = false;   // constant: no gradient, no update
  Multipliers multipliers{};
};

struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  int index = 0;         // registration order
  int64_t offset = 0;    // elements, from the start of the arenas
  Tensor value;          // view of the master arena (f32)
  Tensor compute;        // read by ops: `value`, or its copy by ComputeOptions
  Tensor grad;           // view of the gradient arena (f32), if there is one
  bool written = false;  // a closure wrote `grad` in this backward pass

  // Changed only by the store, which counts changes.
  const ParameterOptions& options() const { return options_; }
  const std::weak_ptr<const void>& lifetime() const { return lifetime_; }  // the store's

 private:
  friend class ParameterStore;
  ParameterOptions options_;
  std::weak_ptr<const void> lifetime_;
};

// Non-trainable state: running statistics of batch norm.
struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  int64_t offset = 0;
  Tensor value;  // view of the buffer arena (f32)

  // Constant: not updated by steps. Changed only by the store, which counts changes.
  bool constant() const { return constant_; }
  const std::weak_ptr<const void>& lifetime() const { return lifetime_; }  // the store's

 private:
  friend class ParameterStore;
  bool constant_ = false;
  std::weak_ptr<const void> lifetime_;
};

// Reference of a layer to a parameter or buffer of a store; may be null. Throws Error on use after the store's end.
template <class Entry>
class StoreRef {
 public:
  StoreRef() = default;
  StoreRef(std::nullptr_t) {}                                               // NOLINT(google-explicit-constructor)
  StoreRef(Entry* entry) : entry_(entry), lifetime_(lifetime_of(entry)) {}  // NOLINT(google-explicit-constructor)

  operator Entry*() const {  // converts like a pointer
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

// Selection of parameters and buffers: by name prefix ("layer1.", "" for all) or by a predicate.
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
