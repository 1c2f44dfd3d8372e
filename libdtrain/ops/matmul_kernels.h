// CPU and CUDA kernels of dtrain/ops/matmul.h.
#pragma once

#include "dtrain/ops/matmul.h"

namespace dtrain {

namespace cpu {
void linear(Context&, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
void linear_dgrad(Context&, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add);
void linear_wgrad(Context&, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add);
}  // namespace cpu

template <>
inline constexpr bool takes_bf16<cpu::linear> = true;
template <>
inline constexpr bool takes_bf16<cpu::linear_dgrad> = true;
template <>
inline constexpr bool takes_bf16<cpu::linear_wgrad> = true;

namespace cuda {
// The same in f32, bf16 and f16; bias and dw are f32.
decltype(cpu::linear) linear;
decltype(cpu::linear_dgrad) linear_dgrad;
decltype(cpu::linear_wgrad) linear_wgrad;
}  // namespace cuda

}  // namespace dtrain
