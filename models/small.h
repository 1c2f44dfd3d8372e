// The smallest models: two of tf_cnn_benchmarks and one for images of 28x28 pixels.
#pragma once

#include "libdtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

// All pixels -> 1 -> 4096 -> classes: hardly any arithmetic, so that it times everything but the model. It is no model
// for accuracy.
class Trivial {
 public:
  Trivial(ParameterStore& store, Trace& trace, int64_t classes);
  // [n, h, w, 3] -> [n, classes]
  Var operator()(Tape& tape, const Var& x) const;

 private:
  Linear fc1_, fc2_, fc3_;
};

// Two 5x5 convolutions with pooling, 512 hidden units (after LeCun et al. 1998).
class LeNet {
 public:
  LeNet(ParameterStore& store, Trace& trace, int64_t classes);
  Var operator()(Tape& tape, const Var& x) const;

 private:
  Conv2d conv1_, conv2_;
  Linear fc1_, fc2_;
};

// Two 3x3 convolutions, one pooling, 128 hidden units, with dropout before each linear layer (after Keras' example for
// MNIST).
class SmallCnn {
 public:
  SmallCnn(ParameterStore& store, Trace& trace, int64_t classes);
  Var operator()(Tape& tape, const Var& x) const;

 private:
  Conv2d conv1_, conv2_;
  Linear fc1_, fc2_;
};

// trivial, lenet and small_cnn, each for the data sets that it suits.
std::vector<Entry> small_entries();

}  // namespace dtrain::models
