// CPU and CUDA kernels of dtrain/ops/local_response_norm.h.
#pragma once

#include "dtrain/ops/local_response_norm.h"

namespace dtrain {

namespace cpu {
// `sums`: s, f32 of x's shape.
void local_response_norm(Context&, const Tensor& x, const LocalResponseNormOptions&, const Tensor& y,
                         const Tensor& sums);
// dx[c] = dy[c] / s[c]^beta - 2 * alpha * beta * x[c] * (sum over the window of dy[j] * x[j] / s[j]^(beta + 1))
void local_response_norm_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& sums,
                              const LocalResponseNormOptions&, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::local_response_norm) local_response_norm;
decltype(cpu::local_response_norm_grad) local_response_norm_grad;
}  // namespace cuda

}  // namespace dtrain
