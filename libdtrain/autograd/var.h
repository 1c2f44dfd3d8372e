// Var: what ops take and give. How a tape is used, and where a gradient goes.
#pragma once

#include "libdtrain/core/tensor.h"

namespace dtrain {

// A tensor and, where its gradient is wanted, its slot on the tape that made it. No other tape takes it then.
struct Var {
  Tensor value;
  int64_t slot = -1;  // the tape's number in the upper 32 bits, the slot's in the lower; -1: no gradient is wanted
  bool needs_grad() const { return slot >= 0; }
  const Shape& shape() const { return value.shape(); }
  // What a closure captures of an input whose gradient it writes but whose value it does not need.
  Var without_value() const { return {{}, slot}; }
};

// Where an op writes a gradient. `add` false: store (the bytes are undefined); true: add to what is there.
struct GradTarget {
  Tensor dx;
  bool add = false;
};

enum class Mode {
  train,  // record; batch statistics; dropout on
  eval,   // record nothing; running statistics; dropout off
};

}  // namespace dtrain
