// CPU and CUDA kernels of dtrain/ops/gating.h.
#pragma once

#include "dtrain/ops/gating.h"

namespace dtrain {

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
