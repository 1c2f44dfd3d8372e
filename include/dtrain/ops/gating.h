// Element-wise multiplication, scaling, sigmoid and SiLU.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// Any shape and floating-point type; outputs have those of the inputs.

// a * b. Throws if shapes or types differ.
Var mul(Tape& tape, const Var& a, const Var& b);
// factor * x
Var scale(Tape& tape, const Var& x, float factor);
// Identity whose gradient is multiplied by `factor`.
Var scale_gradient(Tape& tape, const Var& x, float factor);
// 1 / (1 + exp(-x))
Var sigmoid(Tape& tape, const Var& x);
// x * sigmoid(x) (Hendrycks and Gimpel 2016; also known as swish)
Var silu(Tape& tape, const Var& x);

}  // namespace dtrain
