// CPU and CUDA kernels of dtrain/ops/top_k.h.
#pragma once

#include "dtrain/ops/top_k.h"

namespace dtrain {

namespace cpu {
void top_k(Context&, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices);
void nms(Context&, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions&,
         const Tensor& kept, const Tensor& counts);
}  // namespace cpu

namespace cuda {
decltype(cpu::top_k) top_k;
decltype(cpu::nms) nms;
}  // namespace cuda

}  // namespace dtrain
