// Depthwise convolution: one filter for each channel of NHWC images. With two operations for each tap and pixel it is
// memory-bound.
#pragma once

#include "libdtrain/cpu/conv/algorithm.h"

namespace dtrain::cpu {

// Takes as many groups as channels and filters, and at most seven rows of taps, of any stride, dilation and padding.
Verdict depthwise_verdict(const Context&, const ConvShape&);

// Sums are f32. An element of y or dx is one sum in the order of the taps, rounded once. An element of dw is summed
// over 16 pixels of a row at a time, in one part for each thread.
template <class T>
struct Depthwise {
  static void forward(Context&, const ConvShape&, const ConvOperands<T>&);
  static void dgrad(Context&, const ConvShape&, const ConvOperands<T>&);
  static void wgrad(Context&, const ConvShape&, const ConvOperands<T>&);
};

}  // namespace dtrain::cpu
