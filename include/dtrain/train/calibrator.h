// Calibrator: observes f32 inference and derives int8 quantisation parameters.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/autograd/tape.h"
#include "dtrain/train/activation_ranges.h"

namespace dtrain {

// By the names of their weights.
using NamedLayers = std::map<std::string, QuantizedLayer>;

// Quantised layers: convolutions with one group and linear layers, unless their weights are not parameters or are used
// more than once. Tensors stay in int8 between such layers if nothing else reads them: through relu, max_pool, reshape
// and residual additions. All other ops run in f32.
class Calibrator {
 public:
  // `store` must outlive it.
  explicit Calibrator(const ParameterStore& store) : store_(store) {}

  // Observes one forward pass of a tape over the store in f32, with PreparedWeights that are not quantised. All passes
  // must have the same ops. Throws Error if they differ, Error(Fault::numeric) for non-finite activations. Keeps all
  // activations until the next pass, as in training.
  void observe(Tape& tape);
  // Requires at least one pass. Throws Error if the model has no such layer.
  NamedLayers layers(RangeRule rule) const;

 private:
  // Output of an op, or an input from outside.
  struct Value {
    std::string op{};
    std::vector<int64_t> inputs{};  // indices of values; -1: parameter, or omitted
    const void* weights = nullptr;  // of a quantisable convolution or linear layer
    int64_t channels = 0;
    ActivationRange range{};
  };
  struct Use {
    int64_t by = 0;
    size_t input = 0;
  };
  using Forms = std::vector<std::optional<QuantParams>>;

  int64_t find(const Tensor& x) const;  // -1 if no observed op produced it
  int64_t add(const RecordedOp& op, const Tensor& value, std::vector<int64_t> inputs);
  void look(const RecordedOp& op);
  std::vector<std::vector<Use>> uses() const;
  bool is_layer(const Value& value) const;
  bool takes_bytes(const std::vector<std::vector<Use>>& uses, int64_t value, uint8_t zero) const;
  QuantParams form_of(const std::vector<std::vector<Use>>& uses, int64_t value, RangeRule rule) const;
  Forms forms(RangeRule rule) const;

  const ParameterStore& store_;
  std::vector<Value> values_;
  int64_t passes_ = 0, next_ = 0;
  // Value at each address in this pass; holds its memory, so that addresses are not reused.
  std::map<const void*, std::pair<int64_t, Tensor>> at_;
  std::map<const void*, std::string> names_;  // of the store's weights
  std::map<const void*, int> times_used_;     // of weights, in the first pass
};

// For PreparedWeights::quantize. Throws Error if the store lacks such weights.
QuantizedLayers layers_of(const NamedLayers& layers, const ParameterStore& store);

}  // namespace dtrain
