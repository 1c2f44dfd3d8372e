// ReLU6 (Krizhevsky 2010), the activation of MobileNet.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// min(max(x, 0), 6), of any shape and floating-point type. NaN is propagated.
Var relu6(Tape& tape, const Var& x);

namespace cpu {
void relu6(Context&, const Tensor& x, const Tensor& y);
void relu6_grad(Context&, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::relu6) relu6;
decltype(cpu::relu6_grad) relu6_grad;
}  // namespace cuda

}  // namespace dtrain
