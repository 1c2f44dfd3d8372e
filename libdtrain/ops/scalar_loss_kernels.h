// CPU and CUDA kernels of dtrain/ops/scalar_loss.h.
#pragma once

#include "dtrain/ops/scalar_loss.h"

namespace dtrain {

namespace cpu {
void mean_squared_error(Context&, const Tensor& x, const Tensor& target, const Tensor& loss);
// dx = dloss * 2 / count * (x - target)
void mean_squared_error_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& target, const Tensor& dx,
                             bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::mean_squared_error) mean_squared_error;
decltype(cpu::mean_squared_error_grad) mean_squared_error_grad;
}  // namespace cuda

}  // namespace dtrain
