// The pixels that a convolution joins, for direct sums in tests.
#pragma once

#include "libdtrain/cpu/conv/conv_shape.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {

// Calls use(out, in, tap): tap `tap` of the filters joins pixel `out` of y and pixel `in` of x.
template <class Use>
void for_each_tap(const cpu::ConvShape& o, const Use& use) {
  for (int64_t out = 0; out < o.n * o.p * o.q; ++out)
    for (int64_t tap = 0; tap < o.r * o.s; ++tap) {
      const int64_t h = out / o.q % o.p * o.stride_h + tap / o.s * o.dilation_h - o.pad_top;
      const int64_t w = out % o.q * o.stride_w + tap % o.s * o.dilation_w - o.pad_left;
      if (h >= 0 && h < o.h && w >= 0 && w < o.w) use(out, (out / (o.p * o.q) * o.h + h) * o.w + w, tap);
    }
}

}  // namespace dtrain
