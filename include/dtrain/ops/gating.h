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

namespace cpu {
// y = a * b, accumulated if `add`. In backward: dy times the other factor.
void mul(Context&, const Tensor& a, const Tensor& b, const Tensor& y, bool add);
// y = factor * x, accumulated if `add`; forward and backward. y may alias x.
void scale(Context&, const Tensor& x, float factor, const Tensor& y, bool add);
void sigmoid(Context&, const Tensor& x, const Tensor& y);
void sigmoid_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& dx, bool add);
void silu(Context&, const Tensor& x, const Tensor& y);
void silu_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::mul) mul;
decltype(cpu::scale) scale;
decltype(cpu::sigmoid) sigmoid;
decltype(cpu::sigmoid_grad) sigmoid_grad;
decltype(cpu::silu) silu;
decltype(cpu::silu_grad) silu_grad;
}  // namespace cuda

}  // namespace dtrain
