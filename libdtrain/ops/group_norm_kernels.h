// CPU and CUDA kernels of dtrain/ops/group_norm.h.
#pragma once

#include "dtrain/ops/group_norm.h"

namespace dtrain {

namespace cpu {
// Also writes saved.mean and saved.inv_std.
void group_norm(Context&, const GroupNormSaved& saved, const Tensor& beta, float epsilon, const Tensor& y);
void group_norm_grad(Context&, const Tensor& dy, const GroupNormSaved& saved, const Tensor& dx, bool add);
// dgamma = sum(dy * (x - m) * inv_std) and dbeta = sum(dy), over n and pixels
void group_norm_parameter_grad(Context&, const Tensor& dy, const GroupNormSaved& saved, const GroupNormParameterGrads&);
}  // namespace cpu

namespace cuda {
decltype(cpu::group_norm) group_norm;
decltype(cpu::group_norm_grad) group_norm_grad;
decltype(cpu::group_norm_parameter_grad) group_norm_parameter_grad;
}  // namespace cuda

}  // namespace dtrain
