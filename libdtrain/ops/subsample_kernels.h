// CPU and CUDA kernels of dtrain/ops/subsample.h.
#pragma once

#include "dtrain/ops/subsample.h"

namespace dtrain {

namespace cpu {
void subsample(Context&, const Tensor& x, int stride, int offset, const Tensor& y);
void subsample_grad(Context&, const Tensor& dy, int stride, int offset, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::subsample) subsample;
decltype(cpu::subsample_grad) subsample_grad;
}  // namespace cuda

}  // namespace dtrain
