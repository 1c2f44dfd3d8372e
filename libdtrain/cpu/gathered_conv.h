// Convolutions as products of gathered rows and packed filters by the engine's own kernels. T is float, or Bf16 on an
// instruction set that has products of it. One group.
#pragma once

#include "libdtrain/core/tensor.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/kernels/product.h"
#include "libdtrain/cpu/result_sums.h"

namespace dtrain::cpu {

// Channels as panels have them: filled up to whole words.
template <class T>
constexpr int64_t whole_words(int64_t channels) {
  return (channels + kJoined<T> - 1) / kJoined<T> * kJoined<T>;
}

// Elements of the panels of k filters of `inner` elements each, [k / width][inner][width] in whole panels.
int64_t panel_elements(const Context&, int64_t k, int64_t inner);

// The panels of filters [k, inner], of whole words. What is missing from the last panel is zero.
template <class T>
void pack_panels(Context&, int64_t k, int64_t inner, const T* w, T* panels);

// The same of filters that are the columns of w [inner, k], k in whole panels.
void pack_columns(Context&, int64_t inner, int64_t k, const float* w, float* panels);

// y = act(x * w + end.bias + end.residual), of y's shape, for the panels of w [k, r, s, whole_words(c)]. `may_stream`:
// where y is larger than caches, it is stored past them.
template <class T>
void gathered_conv(Context&, const ConvShape&, const T* x, const T* panels, const EndOf<T>& end, T* y,
                   bool may_stream = true, ResultSums* sums = nullptr);

// Whether these two, which pack their filters in each call, are faster than oneDNN.
bool gathered_forward_pays(const Context&, const ConvShape&, DType);
bool gathered_dgrad_pays(const Context&, const ConvShape&, DType);
// y = x * w + bias; `bias` may be null. Where `sums` are given, y is added up there; k fills panels.
template <class T>
void gathered_forward(Context&, const ConvShape&, const T* x, const T* w, const float* bias, T* y,
                      ResultSums* sums = nullptr);
// y [pixels, k] = act(x [pixels, c] * w + end.bias + end.residual) for the panels of w.
template <class T>
struct PixelProduct {
  int64_t pixels, c, k;
  const T *x, *panels;
  EndOf<T> end;
  T* y;
  Upcoming upcoming{};
};
// By the thread that calls; `streams`: y is stored past the caches where that pays.
template <class T>
void multiply_pixels(const Context&, const PixelProduct<T>&, bool streams);
// dx from dy, stored or added.
template <class T>
void gathered_dgrad(Context&, const ConvShape&, const T* dy, const T* w, T* dx, bool add);

}  // namespace dtrain::cpu
