// Var, GradTarget, Mode: handles of tensors on a tape and destinations of gradients.
#pragma once

#include "dtrain/core/tensor.h"

namespace dtrain {

// Tensor with its gradient slot on the tape that created it, if it needs a gradient. Other tapes reject it.
struct Var {
  Tensor value;
  int64_t slot = -1;  // tape number in the upper 32 bits, slot in the lower; -1: needs no gradient
  bool needs_grad() const { return slot >= 0; }
  const Shape& shape() const { return value.shape(); }
  // For closures that write an input's gradient but do not read its value.
  Var without_value() const { return {{}, slot}; }
};

// Destination of a gradient. `add` false: overwrite uninitialised memory; true: accumulate.
struct GradTarget {
  Tensor dx;
  bool add = false;
};

enum class Mode {
  train,  // record; batch statistics; dropout on
  eval,   // record nothing; running statistics; dropout off
};

}  // namespace dtrain
