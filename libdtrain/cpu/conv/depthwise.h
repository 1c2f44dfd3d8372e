// Depthwise convolution: one filter for each channel of NHWC images. With two operations for each tap and pixel it is
// memory-bound.
#pragma once

#include "libdtrain/cpu/conv/conv_shape.h"

namespace dtrain::cpu {

// Whether there are as many groups as channels and filters, and at most seven rows of taps. Any stride, dilation and
// padding is supported.
bool depthwise_supports(const ConvShape& shape);

// Images and weights are of T, float or Bf16; sums are f32. An element of y or dx is one sum in the order of the taps,
// rounded once. An element of dw is summed over 16 pixels of a row at a time, in one part for each thread.

// y = x * w + bias; `bias` may be null.
template <class T>
void depthwise_forward(Context&, const ConvShape&, const T* x, const T* w, const float* bias, T* y);
// dx from dy, stored or added.
template <class T>
void depthwise_dgrad(Context&, const ConvShape&, const T* dy, const T* w, T* dx, bool add);
// dw from x and dy, stored or added.
template <class T>
void depthwise_wgrad(Context&, const ConvShape&, const T* x, const T* dy, float* dw, bool add);

}  // namespace dtrain::cpu
