// CUDA kernel of crop_masks: one thread per cell; binary searches hit the L1 cache.
#include <cmath>

#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/crop_masks_kernels.h"
#include "libdtrain/ops/crop_masks_math.h"

namespace dtrain::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    crop_masks_kernel(RleTable table, const float* rois, const int32_t* images, const int32_t* which, CropOptions o,
                      int64_t count, float* y) {
  const int cells = o.height * o.width;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    const int64_t r = i / cells, row = images[r], number = which[r];
    if (row < 0 || number < 0 || !table.has(row, number)) {
      y[i] = row < 0 || number < 0 ? 0.0f : NAN;
      continue;
    }
    const RleMask image = table.of(row, number);
    const int cell = static_cast<int>(i - r * cells);
    y[i] =
        crop_cell(image, image.rows(rois + 4 * r, o), image.columns(rois + 4 * r, o), cell / o.width, cell % o.width);
  }
}

__global__ void __launch_bounds__(kThreads)
    ignore_unknown_masks_kernel(RleTable table, const int32_t* images, const int32_t* which, int64_t count,
                                float* weights) {
  for (int64_t r = int64_t{blockIdx.x} * kThreads + threadIdx.x; r < count; r += int64_t{gridDim.x} * kThreads)
    if (table.is_unknown(images[r], which[r])) weights[r] = 0;
}

}  // namespace

void crop_masks(Context& context, const RleMasks& runs, const Tensor& rois, const Tensor& images, const Tensor& which,
                const CropOptions& options, const Tensor& y) {
  if (y.count() == 0) return;
  launch(context, crop_masks_kernel, {blocks_for(context, y.count(), kThreads), kThreads}, RleTable(runs),
         rois.data<float>(), images.data<int32_t>(), which.data<int32_t>(), options, y.count(), y.data<float>());
}

void ignore_unknown_masks(Context& context, const RleMasks& runs, const Tensor& images, const Tensor& which,
                          const Tensor& weights) {
  if (weights.count() == 0) return;
  launch(context, ignore_unknown_masks_kernel, {blocks_for(context, weights.count(), kThreads), kThreads},
         RleTable(runs), images.data<int32_t>(), which.data<int32_t>(), weights.count(), weights.data<float>());
}

}  // namespace dtrain::cuda
