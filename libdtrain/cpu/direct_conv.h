// The convolutions of oneDNN over NHWC images and KRSC filters: any shape, the algorithm of last resort.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "libdtrain/core/tensor.h"
#include "libdtrain/cpu/kernels/product.h"

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

// Images and filters are of `dtype`: f32, or bf16 on an instruction set that has it.
// y = x * w + bias; `bias` may be null.
void direct_conv(Context&, const ConvShape&, DType dtype, const void* x, const void* w, const float* bias, void* y);
// dx from dy, stored or added.
void direct_conv_dgrad(Context&, const ConvShape&, DType dtype, const void* dy, const void* w, void* dx, bool add);
// dw from x and dy, stored or added.
void direct_conv_wgrad(Context&, const ConvShape&, DType dtype, const void* x, const void* dy, float* dw, bool add);

// Filters of bf16 for inference, KRSC, which are brought into the order that oneDNN wants once for each such order.
// Several threads may use them at a time.
class Bf16Filters {
 public:
  explicit Bf16Filters(std::vector<Bf16> filters) : plain_(std::move(filters)) {}

 private:
  friend void direct_conv_inferred(Context&, const ConvShape&, const Bf16* x, Bf16Filters&, const EndOf<Bf16>&,
                                   Bf16* y);
  struct Packed;

  std::vector<Bf16> plain_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Packed>> packed_;
};

// y = act(x * filters + end.bias + end.residual), of bf16 on an instruction set that has it; `end.bias` [k] is needed.
void direct_conv_inferred(Context&, const ConvShape&, const Bf16* x, Bf16Filters& filters, const EndOf<Bf16>& end,
                          Bf16* y);

}  // namespace dtrain::cpu
