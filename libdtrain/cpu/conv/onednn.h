// Convolutions by oneDNN over NHWC images and KRSC weights: any shape and group count, the fallback.
#pragma once

#include <cstdint>

#include "libdtrain/core/tensor.h"
#include "libdtrain/cpu/conv/conv_shape.h"

namespace dtrain {
class Context;
}

namespace dtrain::cpu {

// Images and filters are of `dtype`: f32, or bf16 on an instruction set that has it.
// y = x * w + bias; `bias` may be null.
void onednn_conv(Context&, const ConvShape&, DType dtype, const void* x, const void* w, const float* bias, void* y);
// dx from dy, stored or added.
void onednn_dgrad(Context&, const ConvShape&, DType dtype, const void* dy, const void* w, void* dx, bool add);
// dw from x and dy, stored or added.
void onednn_wgrad(Context&, const ConvShape&, DType dtype, const void* x, const void* dy, float* dw, bool add);

}  // namespace dtrain::cpu
