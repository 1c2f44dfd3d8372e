// Deprecated header, removed with the next minor version: include libdtrain/ops/crop_masks.h.
#pragma once

#include "libdtrain/ops/crop_masks.h"

namespace dtrain {

using RunImages [[deprecated("renamed: RleMasks")]] = RleMasks;

[[deprecated("renamed: crop_masks")]] inline void crop_runs(Context& context, const RleMasks& masks, const Tensor& rois,
                                                            const Tensor& images, const Tensor& which,
                                                            const CropOptions& options, const Tensor& y) {
  crop_masks(context, masks, rois, images, which, options, y);
}
[[deprecated("renamed: ignore_unknown_masks")]] inline void mask_out_unknown_runs(
    Context& context, const RleMasks& masks, const Tensor& images, const Tensor& which, const Tensor& weights) {
  ignore_unknown_masks(context, masks, images, which, weights);
}

}  // namespace dtrain
