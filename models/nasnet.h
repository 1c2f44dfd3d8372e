// NASNet-A (Zoph et al. 2018) as in TensorFlow's models: for CIFAR, and mobile and large for ImageNet. Parameter names
// are TensorFlow's scopes, joined by dots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrain/layers.h"
#include "dtrain/ops/drop_path.h"
#include "models/entry.h"

namespace dtrain::models {

struct NasNetOptions {
  int cells = 12;                     // normal cells
  int64_t filters = 44;               // of the first cells; doubled by each reduction
  int stem_multiplier = 1;            // of the stem's channels
  bool imagenet = true;               // strided stem and two reductions, else a single convolution
  bool skip_reduction_input = false;  // the cell after a reduction skips the reduction's direct input
  float dropout = 0.5f;               // before the last layer
  float drop_path = 0;                // rate in the last cell at the end of training
  int64_t training_steps = 250000;    // over which the drop-path rate ramps up
  bool auxiliary_head = false;        // on the cell before the second reduction
  BatchNormOptions batch_norm{.epsilon = 1e-3f, .momentum = 0.9997f};
};

// Operation on one input of a pair.
enum class NasNetAction { separable, average, maximum, none };

class NasNet {
 public:
  NasNet(ParameterStore& store, Trace& trace, const NasNetOptions& options, int64_t classes);
  // [n, h, w, 3] -> [n, classes]; image size as at the start of the trace. In training, logits of the auxiliary head,
  // if any, are appended to `auxiliary`.
  Var operator()(Tape& tape, const Var& x, std::vector<Var>* auxiliary = nullptr) const;

 private:
  class Builder;
  // Separable convolution: ReLU, depthwise convolution, 1x1 convolution, batch norm.
  struct Separable {
    Conv2d depthwise;
    ConvBnAct pointwise;
  };
  // Factorised reduction: halves the resolution; half of the channels read even pixels, the other half odd ones.
  struct Halving {
    Conv2d even, odd;
    BatchNorm bn;
  };
  // One of the two operations whose results a cell adds.
  struct Operation {
    NasNetAction action;
    size_t input;  // 0: the previous layer; 1: the one before; then the sums of the pairs
    std::vector<Separable> layers{};
    PoolOptions pool{.kernel = 1, .stride = 1};
    std::optional<ConvBnAct> projection{};  // where the number of channels or the resolution changes
    DropPathOptions drop_path{};
    Var operator()(Tape& tape, const Var& x) const;
  };
  // Matches the resolution and channels of the layer before last to a cell: reduction, projection or identity.
  struct Adapter {
    std::optional<Halving> halving{};
    std::optional<ConvBnAct> projection{};
    Var operator()(Tape& tape, const Var& x) const;
  };
  struct Cell {
    Adapter previous;
    ConvBnAct beginning;
    std::vector<Operation> operations;           // ten, in pairs
    std::vector<size_t> joined;                  // inputs and sums that no operation reads; concatenated
    std::optional<ConvBnAct> joined_projection;  // of input 1 where it has other channels
    // Arguments: outputs of the last two layers.
    Var operator()(Tape& tape, const Var& x, const Var& previous) const;
  };
  struct AuxiliaryHead {
    ConvBnAct projection, whole;
    Linear classifier;
    Var operator()(Tape& tape, const Var& x) const;
  };
  // A cell with the number of its second input among the outputs so far (0: the stem); the first input is the last
  // output.
  struct Step {
    Cell cell;
    size_t previous;
    std::optional<AuxiliaryHead> auxiliary{};
  };

  float dropout_;
  ConvBnAct stem_;
  std::vector<Step> steps_;
  Linear classifier_;
};

// nasnet for ImageNet (mobile) and CIFAR-10, and nasnetlarge.
std::vector<Entry> nasnet_entries();

}  // namespace dtrain::models
