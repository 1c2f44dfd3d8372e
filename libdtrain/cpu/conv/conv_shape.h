// The geometry of a 2-D convolution over NHWC images with KRSC weights.
#pragma once

#include <cstdint>

#include "dtrain/core/tensor.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// A convolution in plain numbers, the key of what is kept for it: members of one type only, so that there is no
// padding.
struct ConvShape {
  int64_t n, h, w, c;
  int64_t k, r, s;
  int64_t p, q;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  int64_t groups;
};

// A [rows, c] times B [c, k] as a 1x1 convolution of images of one pixel.
inline ConvShape pointwise_shape(int64_t rows, int64_t c, int64_t k) {
  return {.n = rows,
          .h = 1,
          .w = 1,
          .c = c,
          .k = k,
          .r = 1,
          .s = 1,
          .p = 1,
          .q = 1,
          .stride_h = 1,
          .stride_w = 1,
          .dilation_h = 1,
          .dilation_w = 1,
          .groups = 1};
}

// Whether output pixel i reads input pixel i alone.
inline bool reads_pixels_in_order(const ConvShape& o) {
  return o.r == 1 && o.s == 1 && o.stride_h == 1 && o.stride_w == 1 && o.h == o.p && o.w == o.q && o.pad_top == 0 &&
         o.pad_left == 0;
}

// Output pixel (i, j) of image m is element first + m * image + i * row + j * pixel.
struct OutputLayout {
  int64_t first, image, row, pixel;

  bool operator==(const OutputLayout&) const = default;

  // One after the other.
  static OutputLayout in_order(const ConvShape& o) { return {0, o.p * o.q * o.k, o.q * o.k, o.k}; }
};

}  // namespace dtrain::cpu
