// Depthwise convolutions: each channel of an NHWC image with a filter of its own. There are two operations for each
// tap and pixel, so that what they take is the way of the images through memory.
#pragma once

#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// Whether the kernels take the shape: as many groups as channels and filters, and at most seven rows of taps. They take
// any stride, dilation and padding.
bool depthwise_supports(const ConvShape& shape);

// Images and filters are of T, float or Bf16; arithmetic is in fp32. An element of y or dx is one sum in the order of
// the taps, which is rounded once; one of dw is a sum over 16 pixels of a row at a time, in as many parts as the
// context has threads.

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
