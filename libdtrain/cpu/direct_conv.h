// The convolutions of oneDNN over NHWC images and KRSC filters: any shape, the algorithm of last resort.
#pragma once

#include <cstdint>

#include "libdtrain/core/tensor.h"

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
  int64_t pad_top, pad_bottom, pad_left, pad_right;
  int64_t groups;
};

// Whether output pixel i reads input pixel i alone.
inline bool reads_pixels_in_order(const ConvShape& o) {
  return o.r == 1 && o.s == 1 && o.stride_h == 1 && o.stride_w == 1 && o.h == o.p && o.w == o.q && o.pad_top == 0 &&
         o.pad_left == 0;
}

// Images and filters are of `dtype`: f32, or bf16 on an instruction set that has it.
// y = x * w + bias; `bias` may be null.
void direct_conv(Context&, const ConvShape&, DType dtype, const void* x, const void* w, const float* bias, void* y);
// dx from dy, stored or added.
void direct_conv_dgrad(Context&, const ConvShape&, DType dtype, const void* dy, const void* w, void* dx, bool add);
// dw from x and dy, stored or added.
void direct_conv_wgrad(Context&, const ConvShape&, DType dtype, const void* x, const void* dy, float* dw, bool add);

}  // namespace dtrain::cpu
