// The two smallest models of tf_cnn_benchmarks: for checking a set-up, not for accuracy.
#pragma once

#include "libdtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

// All pixels -> 1 -> 4096 -> classes: hardly any arithmetic, so that it times everything but the model.
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

// trivial for both data sets, and lenet.
std::vector<Entry> small_entries();

}  // namespace dtrain::models
