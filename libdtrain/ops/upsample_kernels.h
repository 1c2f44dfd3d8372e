// CPU and CUDA kernels of dtrain/ops/upsample.h.
#pragma once

#include "dtrain/ops/upsample.h"

namespace dtrain {

namespace cpu {
void upsample_nearest(Context&, const Tensor& x, const Tensor& base, const Tensor& y);
void upsample_nearest_grad(Context&, const Tensor& dy, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::upsample_nearest) upsample_nearest;
decltype(cpu::upsample_nearest_grad) upsample_nearest_grad;
}  // namespace cuda

}  // namespace dtrain
