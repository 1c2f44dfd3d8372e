// NASNet-A (Zoph et al. 2018), as TensorFlow's models have it: the form for CIFAR, and the mobile and the large one for
// ImageNet. Parameters have the names of TensorFlow's scopes, with dots between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libdtrain/layers.h"
#include "libdtrain/ops/drop_path.h"
#include "models/entry.h"

namespace dtrain::models {

struct NasNetOptions {
  int cells = 12;                     // of the normal kind
  int64_t filters = 44;               // of the first cells, doubled by each of the two reductions
  int stem_multiplier = 1;            // of the stem's channels
  bool imagenet = true;               // a strided stem and two reductions at once; else one convolution
  bool skip_reduction_input = false;  // the cell after a reduction reads what the reduction read before its input
  float dropout = 0.5f;               // before the last layer
  float drop_path = 0;                // in the last cell, at the end of training
  int64_t training_steps = 250000;    // in which drop path comes up
  bool auxiliary_head = false;        // on the cell before the second reduction
  BatchNormOptions batch_norm{.epsilon = 1e-3f, .momentum = 0.9997f};
};

// What one side of a pair does with its input.
enum class NasNetAction { separable, average, maximum, none };

class NasNet {
 public:
  NasNet(ParameterStore& store, Trace& trace, const NasNetOptions& options, int64_t classes);
  // [n, h, w, 3] -> [n, classes], from images of the size that the trace began with. Those of the auxiliary head, if
  // there is one, are appended to `auxiliary` in training.
  Var operator()(Tape& tape, const Var& x, std::vector<Var>* auxiliary = nullptr) const;

 private:
  class Builder;
  // ReLU, a depthwise convolution, a 1x1 one and batch norm.
  struct Separable {
    Conv2d depthwise;
    ConvBnAct pointwise;
  };
  // Halves an image without leaving pixels out: half of the channels are made of the even ones, half of the odd ones.
  struct Halving {
    Conv2d even, odd;
    BatchNorm bn;
  };
  // One side of a pair that a cell adds up.
  struct Operation {
    NasNetAction action;
    size_t input;  // 0: the layer before; 1: the one before that; then the pairs' sums
    std::vector<Separable> layers{};
    PoolOptions pool{.kernel = 1, .stride = 1};
    std::optional<ConvBnAct> projection{};  // where the number of channels or the resolution changes
    DropPathOptions drop_path{};
    Var operator()(Tape& tape, const Var& x) const;
  };
  // How the layer before the last gets the resolution and the channels of a cell: one of the two, or none.
  struct Adapter {
    std::optional<Halving> halving{};
    std::optional<ConvBnAct> projection{};
    Var operator()(Tape& tape, const Var& x) const;
  };
  struct Cell {
    Adapter previous;
    ConvBnAct beginning;
    std::vector<Operation> operations;           // ten, in pairs
    std::vector<size_t> joined;                  // the inputs and sums that no operation reads
    std::optional<ConvBnAct> joined_projection;  // of input 1 where it has other channels
    // From what the two layers before it give.
    Var operator()(Tape& tape, const Var& x, const Var& previous) const;
  };
  struct AuxiliaryHead {
    ConvBnAct projection, whole;
    Linear classifier;
    Var operator()(Tape& tape, const Var& x) const;
  };
  // It reads the last of the outputs so far, of which the stem's is number 0, and that with this number.
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

// nasnet for ImageNet, the mobile one, and for CIFAR-10; nasnetlarge.
std::vector<Entry> nasnet_entries();

}  // namespace dtrain::models
