// Calibrator: looks on while a model infers in f32, and says how it infers in int8.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"
#include "libdtrain/train/activation_ranges.h"

namespace dtrain {

// Layers by the names of their weights.
using NamedLayers = std::map<std::string, QuantizedLayer>;

// Layers in int8 are the convolutions of one group and the linear layers of a model, except those whose weights are not
// parameters or are used more than once. Bytes pass from one to the next where nothing else reads them: through relu,
// max_pool and reshape and into sums with residuals. All other ops are given floats.
class Calibrator {
 public:
  // The store outlives it.
  explicit Calibrator(const ParameterStore& store) : store_(store) {}

  // Shows it one forward pass: by a tape with PreparedWeights that are not quantised, over the store, in f32. Every
  // pass has the same ops. Throws Error where they are others, and Error(Fault::numeric) where an activation is not
  // finite. Keeps all activations in memory until the next pass, as training would.
  void observe(Tape& tape);
  // Called after at least one pass. Throws Error where the model has no such layer.
  NamedLayers layers(RangeRule rule) const;

 private:
  // What an op made, or what it was given from outside.
  struct Value {
    std::string op{};
    std::vector<int64_t> inputs{};  // numbers of values; -1: a parameter, or left out
    const void* weights = nullptr;  // of a convolution or a linear layer that may be in int8
    int64_t channels = 0;
    ActivationRange range{};
  };
  struct Use {
    int64_t by = 0;
    size_t input = 0;
  };
  using Forms = std::vector<std::optional<ByteForm>>;

  int64_t find(const Tensor& x) const;  // -1 where no op that was observed made it
  int64_t add(const RecordedOp& op, const Tensor& value, std::vector<int64_t> inputs);
  void look(const RecordedOp& op);
  std::vector<std::vector<Use>> uses() const;
  bool is_layer(const Value& value) const;
  bool takes_bytes(const std::vector<std::vector<Use>>& uses, int64_t value, uint8_t zero) const;
  ByteForm form_of(const std::vector<std::vector<Use>>& uses, int64_t value, RangeRule rule) const;
  Forms forms(RangeRule rule) const;

  const ParameterStore& store_;
  std::vector<Value> values_;
  int64_t passes_ = 0, next_ = 0;
  // Which value lies at an address, in this pass, and its memory, so that nothing else comes to lie there.
  std::map<const void*, std::pair<int64_t, Tensor>> at_;
  std::map<const void*, std::string> names_;  // of the store's weights
  std::map<const void*, int> times_used_;     // weights, in the first pass
};

// For PreparedWeights::quantize. Throws Error where the store has no such weights.
QuantizedLayers layers_of(const NamedLayers& layers, const ParameterStore& store);

}  // namespace dtrain
