// Winograd's minimal filtering algorithm F(4x4, 3x3) (Lavin and Gray 2016) for 3x3, stride-1 convolutions over NHWC
// images: 36 multiplications where the direct sum takes 144. Relative error against the direct sum about 1e-6 to 1e-5
// in fp32. T is float or Bf16; arithmetic is in fp32.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/cpu/kernels/gemm.h"

namespace dtrain::cpu {

// x [n, h, w, c], filters [k, 3, 3, c], y [n, p, q, k] with p = h + pad_top + pad_bottom - 2, q alike.
struct WinogradShape {
  int64_t n, h, w, c, k, p, q;
  int64_t pad_top, pad_left;
};

// `o` as these functions take it, if it has a 3x3 kernel, stride 1, no dilation and one group.
std::optional<WinogradShape> winograd_shape(const ConvShape& o);
// Whether channels and filters fill panels.
bool winograd_supports(const Context&, const WinogradShape&);
// Whether it beats implicit GEMM: enough channels to pay for the transforms of images, at least `min_tiles` tiles to
// pay for the transform of the weights, and tiles that do not mostly lie outside the image.
bool winograd_pays(const WinogradShape&, int64_t min_tiles);

// The transformed weights w [k, 3, 3, c] of the forward pass, for images of any size.
template <class T>
Tensor winograd_weights(Context&, int64_t c, int64_t k, const T* w);
// y = epilogue(x * w) for transformed weights.
template <class T>
void winograd_forward(Context&, const WinogradShape&, const T* x, const Tensor& weights,
                      const std::type_identity_t<Epilogue<T>>&, T* y);
// y = x * w + bias; `bias` [k] may be null. Where `statistics` is given, y is added up there.
template <class T>
void winograd_forward(Context&, const WinogradShape&, const T* x, const T* w, const float* bias, T* y,
                      FusedStatistics* statistics = nullptr);
// dx from dy, stored or added: the forward algorithm with rotated and transposed weights. The shape is the forward one.
template <class T>
void winograd_dgrad(Context&, const WinogradShape&, const T* dy, const T* w, T* dx, bool add);
// dw from x and dy, stored or added.
template <class T>
void winograd_wgrad(Context&, const WinogradShape&, const T* x, const T* dy, float* dw, bool add);

}  // namespace dtrain::cpu
