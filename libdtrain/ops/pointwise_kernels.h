// CPU and CUDA kernels of dtrain/ops/pointwise.h.
#pragma once

#include "dtrain/ops/pointwise.h"

namespace dtrain {

namespace cpu {
void relu(Context&, const Tensor& x, const Tensor& y);
void relu_grad(Context&, const Tensor& dy, const Tensor& y, const Tensor& dx, bool add);
void add(Context&, const Tensor& a, const Tensor& b, const Tensor& y);
void add_relu(Context&, const Tensor& a, const Tensor& b, const Tensor& y);
// Forward and backward: y = x * mask / (1 - rate)
void dropout(Context&, const Tensor& x, float rate, uint64_t stream, const Tensor& y, bool add);
void normalize_pixels(Context&, const Tensor& x, const PixelNormalization&, const Tensor& y);
void accumulate(Context&, const Tensor& x, const Tensor& y);
void seed_loss_gradient(Context&, const Tensor& dy);
}  // namespace cpu

template <>
inline constexpr bool takes_bf16<cpu::relu> = true;
template <>
inline constexpr bool takes_bf16<cpu::relu_grad> = true;
template <>
inline constexpr bool takes_bf16<cpu::add> = true;
template <>
inline constexpr bool takes_bf16<cpu::add_relu> = true;
template <>
inline constexpr bool takes_bf16<cpu::normalize_pixels> = true;
template <>
inline constexpr bool takes_bf16<cpu::accumulate> = true;

namespace cuda {
decltype(cpu::relu) relu;
decltype(cpu::relu_grad) relu_grad;
decltype(cpu::add) add;
decltype(cpu::add_relu) add_relu;
decltype(cpu::dropout) dropout;
decltype(cpu::normalize_pixels) normalize_pixels;
decltype(cpu::accumulate) accumulate;
decltype(cpu::seed_loss_gradient) seed_loss_gradient;
}  // namespace cuda

}  // namespace dtrain
