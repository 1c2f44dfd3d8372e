// Crops of run-length encoded (RLE) binary masks: the training targets of a mask head.
#pragma once

#include <tuple>

#include "dtrain/core/context.h"

namespace dtrain {

// Up to g masks for each of n images, column-major as in COCO: pixel (y, x) of a mask of height `height` has index x *
// height + y. A run ends where the value changes; the first run is of zeros and may be empty.
struct RleMasks {
  Tensor ends;    // [n, capacity] i32: end of each run; masks of a row are concatenated
  Tensor begins;  // [n, g + 1] i32: offset in `ends` of each mask's runs; the last entry is their end
  Tensor sizes;   // [n, 2] f32: height and width of all masks of a row

  auto tensors() const { return std::tie(ends, begins, sizes); }
};

struct CropOptions {
  int height = 28, width = 28;
  int sampling_ratio = 1;  // samples per cell and axis, averaged; 0: adaptive, as in roi_align
  bool aligned = true;     // as in roi_align
};
// y [r, height, width] f32: roi_align of region rois[i] ([r, 4] f32) on mask which[i] (i32) of row images[i] (i32),
// with values 0 and 1; 0 if images[i] or which[i] is negative. Throws Error for mismatched shapes or types; a mask that
// does not exist throws on a CPU and gives NaN on a GPU.
void crop_masks(Context& context, const RleMasks& runs, const Tensor& rois, const Tensor& images, const Tensor& which,
                const CropOptions& options, const Tensor& y);

// Sets weights [r] f32 to 0 where mask which[i] of row images[i] has no runs at all: its pixels are unknown. Throws
// Error as crop_masks does.
void ignore_unknown_masks(Context& context, const RleMasks& runs, const Tensor& images, const Tensor& which,
                          const Tensor& weights);

}  // namespace dtrain
