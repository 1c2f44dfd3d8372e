// Micro-kernels of max pooling: one window of the forward pass, and one pixel of the backward pass. Elements are of
// T, float or Bf16, with c channels to a pixel; sums are float.
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/by_type.h"

namespace dtrain::cpu {

// The pixels of a window, at least one, and the index of each in the window.
template <class T>
struct MaxWindow {
  const T* const* pixels;
  const uint8_t* cells;
  int count;
  int64_t c;
  T* best;          // [c]
  uint8_t* winner;  // [c], the cell of the maximum; null: not wanted
};

// The windows that cover a pixel, and the index of the pixel in each.
template <class T>
struct MaxGradient {
  const T* const* dy;             // of each window, [c]
  const uint8_t* const* winners;  // of each window, [c]
  const uint8_t* cells;
  int count;
  int64_t c;
  T* dx;  // [c], = or += the sum of dy of the windows whose maximum the pixel is
  bool add;
};

template <class T>
struct MaxPoolLoops {
  // The first of the largest wins, or the last NaN.
  void (*window)(const MaxWindow<T>&);
  void (*gradient)(const MaxGradient<T>&);
};

using MaxPoolKernels = ByType<MaxPoolLoops>;

}  // namespace dtrain::cpu
