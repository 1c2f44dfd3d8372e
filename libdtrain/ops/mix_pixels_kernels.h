// CPU and CUDA kernels of dtrain/ops/mix_pixels.h.
#pragma once

#include "dtrain/ops/mix_pixels.h"

namespace dtrain {

namespace cpu {
void mix_pixels(Context&, const Tensor& x, const PixelNormalization&, const PixelMixing&, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::mix_pixels) mix_pixels;
}  // namespace cuda

}  // namespace dtrain
