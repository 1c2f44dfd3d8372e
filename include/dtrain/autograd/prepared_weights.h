// PreparedWeights: cache of weights transformed for inference: batch norm folded, packed for kernels, quantised to
// int8.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <typeindex>
#include <utility>

#include "dtrain/autograd/parameters.h"
#include "dtrain/autograd/quantized_layer.h"

namespace dtrain {

// Owned together with the parameters. Thread-safe: tapes of several threads may share it.
class PreparedWeights {
 public:
  // For the parameters of `store`, which must outlive it; else of() throws Error. Entries are rebuilt once
  // ParameterStore::version() has changed: after an update, a load, or touch() for values written by hand.
  explicit PreparedWeights(const ParameterStore& store)
      : store_(
            std::in_place, store,
            "PreparedWeights are used after their ParameterStore has been destroyed; expected one that outlives them"),
        version_(store.version()) {}
  [[deprecated("use PreparedWeights(store): entries of this one are not rebuilt after updates")]] PreparedWeights() {}

  // Addresses of up to three source tensors of an entry; null for the rest.
  using Addresses = std::array<const void*, 3>;

  // Cached entry of type Form, built by `make`, which returns std::shared_ptr<Form>, on first use.
  template <class Form, class Make>
  std::shared_ptr<Form> of(const Addresses& addresses, const Make& make) {
    const std::lock_guard lock(mutex_);
    const uint64_t version = store_ ? (*store_)->version() : 0;
    if (version_ != version) forms_.clear();
    version_ = version;
    std::shared_ptr<void>& form = forms_[{addresses, std::type_index(typeid(Form))}];
    if (!form) form = std::shared_ptr<Form>(make());
    return std::static_pointer_cast<Form>(form);
  }

  // Runs these convolutions and linear layers in int8. Call before the first tape uses this.
  void quantize(QuantizedLayers layers) { quantized_ = std::move(layers); }
  // Null for layers in floating point.
  const QuantizedLayer* quantized(const void* weights) const {
    const auto found = quantized_.find(weights);
    return found == quantized_.end() ? nullptr : &found->second;
  }

 private:
  std::optional<CheckedRef<const ParameterStore>> store_;
  QuantizedLayers quantized_;
  std::mutex mutex_;
  uint64_t version_ = 0;  // of the store, when forms_ were built
  std::map<std::pair<Addresses, std::type_index>, std::shared_ptr<void>> forms_;
};

}  // namespace dtrain
