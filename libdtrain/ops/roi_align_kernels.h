// CPU and CUDA kernels of dtrain/ops/roi_align.h.
#pragma once

#include "dtrain/ops/roi_align.h"

namespace dtrain {

namespace cpu {
void roi_align(Context&, std::span<const Tensor> maps, const Tensor& rois, const Tensor& images, const Tensor& levels,
               const RoiAlignOptions&, const Tensor& y);
// Gradients of all maps, undefined if not needed; overwritten, or accumulated if add[i].
void roi_align_grad(Context&, const Tensor& dy, const Tensor& rois, const Tensor& images, const Tensor& levels,
                    const RoiAlignOptions&, std::span<const Tensor> dmaps, std::span<const uint8_t> add);
void roi_levels(Context&, const Tensor& rois, const RoiLevels&, const Tensor& levels);
}  // namespace cpu

namespace cuda {
decltype(cpu::roi_align) roi_align;
decltype(cpu::roi_align_grad) roi_align_grad;
decltype(cpu::roi_levels) roi_levels;
}  // namespace cuda

}  // namespace dtrain
