// CPU and CUDA kernels of dtrain/ops/crop_masks.h.
#pragma once

#include "dtrain/ops/crop_masks.h"

namespace dtrain {

namespace cpu {
void crop_masks(Context&, const RleMasks&, const Tensor& rois, const Tensor& images, const Tensor& which,
                const CropOptions&, const Tensor& y);
void ignore_unknown_masks(Context&, const RleMasks&, const Tensor& images, const Tensor& which, const Tensor& weights);
}  // namespace cpu

namespace cuda {
decltype(cpu::crop_masks) crop_masks;
decltype(cpu::ignore_unknown_masks) ignore_unknown_masks;
}  // namespace cuda

}  // namespace dtrain
