// CPU and CUDA kernels of dtrain/ops/roi_samples.h.
#pragma once

#include "dtrain/ops/roi_samples.h"

namespace dtrain {

namespace cpu {
void gather_samples(Context&, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder&, const RoiSamples&);
}  // namespace cpu

namespace cuda {
decltype(cpu::gather_samples) gather_samples;
}  // namespace cuda

}  // namespace dtrain
