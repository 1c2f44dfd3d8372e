// Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray 2016) for 3x3, stride-1 convolutions over NHWC images: 36
// multiplications where the direct sum takes 144. Relative error against the direct sum about 1e-6 to 1e-5 in fp32.
// T is float or Bf16; arithmetic is in fp32.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "libdtrain/core/tensor.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/kernels/product.h"
#include "libdtrain/cpu/result_sums.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// x [n, h, w, c], filters [k, 3, 3, c], y [n, p, q, k] with p = h + pad_top + pad_bottom - 2, q alike.
struct WinogradShape {
  int64_t n, h, w, c, k, p, q;
  int64_t pad_top, pad_left;
};

// Whether the kernels take the shape: channels in whole panels.
bool winograd_supports(const Context&, const WinogradShape& shape);
// Whether they take it and are faster there than the direct sum: enough channels to pay for the transforms of images,
// enough tiles to pay for that of the filters, and tiles that do not mostly hang over the edge of the image.
// Measured at 7x7x512 and 14x14x256: 16 tiles lose by 0.4 to 0.9, 32 win by 1.0 to 1.9.
bool winograd_pays(const Context&, const WinogradShape& shape, int64_t least_tiles = 24);
// A convolution as these take it, where it is of their kind and they pay.
std::optional<WinogradShape> winograd_of(const Context&, const ConvShape& shape, int64_t least_tiles);

// The filters w as the forward pass reads them, for any size of image.
template <class T>
Tensor winograd_filters(Context&, int64_t c, int64_t k, const T* w);
// y = x * w with what `end` does to it.
template <class T>
void winograd_forward(Context&, const WinogradShape&, const T* x, const Tensor& filters,
                      const std::type_identity_t<EndOf<T>>& end, T* y);
// y = x * w + bias; `bias` [k] may be null. Where `sums` are given, y is added up there.
template <class T>
void winograd_forward(Context&, const WinogradShape&, const T* x, const T* w, const float* bias, T* y,
                      ResultSums* sums = nullptr);
// dx from dy: the forward algorithm with the filters turned and transposed. `shape` is that of the forward convolution.
template <class T>
void winograd_dgrad(Context&, const WinogradShape&, const T* dy, const T* w, T* dx, bool add);
// dw from x and dy, stored or added.
template <class T>
void winograd_wgrad(Context&, const WinogradShape&, const T* x, const T* dy, float* dw, bool add);

}  // namespace dtrain::cpu
