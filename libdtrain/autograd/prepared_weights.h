// What inference makes of parameters once and uses often: filters with batch norm folded into them, in the order in
// which kernels read them, as floats or as bytes.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/quantized_layer.h"

namespace dtrain {

// Owned together with the parameters. Thread-safe: tapes of several threads may share it.
class PreparedWeights {
 public:
  // For the parameters of `store`, which outlives this; of() throws Error where it does not. What was made of them is
  // made anew once ParameterStore::version() has changed: after an update or a load, and after touch() where values
  // were written by hand.
  explicit PreparedWeights(const ParameterStore& store)
      : store_(
            store,
            "PreparedWeights are used after their ParameterStore has been destroyed; expected one that outlives them"),
        version_(store.version()) {}

  // Where the parameters lie that a form is made of: up to three that belong together, and null for the rest.
  using Addresses = std::array<const void*, 3>;

  // Their Form: the std::shared_ptr<Form> that `make` returned when it was first asked for.
  template <class Form, class Make>
  std::shared_ptr<Form> of(const Addresses& addresses, const Make& make) {
    const std::lock_guard lock(mutex_);
    if (version_ != store_->version()) forms_.clear();
    version_ = store_->version();
    std::shared_ptr<void>& form = forms_[{addresses, std::type_index(typeid(Form))}];
    if (!form) form = std::shared_ptr<Form>(make());
    return std::static_pointer_cast<Form>(form);
  }

  // Makes these convolutions and linear layers compute in int8. Called before any tape uses this.
  void quantize(QuantizedLayers layers) { quantized_ = std::move(layers); }
  // Null where the layer of these weights computes in floats.
  const QuantizedLayer* quantized(const void* weights) const {
    const auto found = quantized_.find(weights);
    return found == quantized_.end() ? nullptr : &found->second;
  }

 private:
  CheckedRef<const ParameterStore> store_;
  QuantizedLayers quantized_;
  std::mutex mutex_;
  uint64_t version_;  // of the store, when forms_ were made
  std::map<std::pair<Addresses, std::type_index>, std::shared_ptr<void>> forms_;
};

}  // namespace dtrain
