// CPU and CUDA kernels of dtrain/ops/relu6.h.
#pragma once

#include "dtrain/ops/relu6.h"

namespace dtrain {

namespace cpu {
void relu6(Context&, const Tensor& x, const Tensor& y);
void relu6_grad(Context&, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::relu6) relu6;
decltype(cpu::relu6_grad) relu6_grad;
}  // namespace cuda

}  // namespace dtrain
