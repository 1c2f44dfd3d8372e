// The convolutions of oneDNN over NHWC images and KRSC filters: any shape, the algorithm of last resort.
#pragma once

#include <cstdint>

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

// y = x * w + bias; `bias` may be null.
void direct_conv(Context&, const ConvShape&, const float* x, const float* w, const float* bias, float* y);
// dx from dy, stored or added.
void direct_conv_dgrad(Context&, const ConvShape&, const float* dy, const float* w, float* dx, bool add);
// dw from x and dy, stored or added.
void direct_conv_wgrad(Context&, const ConvShape&, const float* x, const float* dy, float* dw, bool add);

}  // namespace dtrain::cpu
