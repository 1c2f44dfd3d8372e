// The fully connected layer: y = x w^T + b.
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

// x [n, in], w [out, in], bias null or [out] -> [n, out]. Throws where shapes do not fit.
Var linear(Tape& tape, const Var& x, const Var& w, const Var* bias = nullptr);

namespace cpu {
void linear(Context&, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
void linear_dgrad(Context&, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add);
void linear_wgrad(Context&, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add);
}  // namespace cpu

}  // namespace dtrain
