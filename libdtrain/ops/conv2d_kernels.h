// CPU and CUDA kernels of dtrain/ops/conv2d.h.
#pragma once

#include "dtrain/ops/conv2d.h"

namespace dtrain {

namespace cpu {
struct ConvShape;
// The geometry of a convolution of images x to y with weights w [k, r, s, c / groups].
ConvShape shape_of(const Shape& x, const Shape& w, const Shape& y, const Conv2dOptions& options);
ConvShape shape_of(const Tensor& x, const Tensor& w, const Tensor& y, const Conv2dOptions& options);
// `bias` may be undefined. Gradients are stored, or added where `add`.
void conv2d(Context&, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions&, const Tensor& y);
void conv2d_dgrad(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, const Tensor& dx, bool add);
void conv2d_wgrad(Context&, const Tensor& x, const Tensor& dy, const Conv2dOptions&, const Tensor& dw, bool add);
// db[k] = sum of dy over n, p, q
void bias_grad(Context&, const Tensor& dy, const Tensor& db, bool add);
// y[.., k] += bias[k]
void add_bias(Context&, const Tensor& bias, const Tensor& y);
}  // namespace cpu

template <>
inline constexpr bool takes_bf16<cpu::conv2d> = true;
template <>
inline constexpr bool takes_bf16<cpu::conv2d_dgrad> = true;
template <>
inline constexpr bool takes_bf16<cpu::conv2d_wgrad> = true;

namespace cuda {
// The same in f32, bf16 and f16, images, weights and their gradients except dw; bias, dw and db are f32. Where dw has
// fewer channels than x (images whose pixels are padded with zeros), the first ones are written.
decltype(cpu::conv2d) conv2d;
decltype(cpu::conv2d_dgrad) conv2d_dgrad;
decltype(cpu::conv2d_wgrad) conv2d_wgrad;
decltype(cpu::bias_grad) bias_grad;
decltype(cpu::add_bias) add_bias;
}  // namespace cuda

}  // namespace dtrain
