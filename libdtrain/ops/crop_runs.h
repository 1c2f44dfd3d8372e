// Crops of binary images that are kept as run lengths: what a mask head is trained on.
#pragma once

#include <tuple>

#include "libdtrain/core/context.h"

namespace dtrain {

// Up to g binary images for each of n images, column by column as COCO has them: pixel (y, x) of one that is `height`
// high is number x * height + y. A run ends where the value changes, and the first is of zeros (and may be empty).
struct RunImages {
  Tensor ends;    // [n, capacity] i32: where each run ends, the images of a row one after the other
  Tensor begins;  // [n, g + 1] i32: where in a row of `ends` those of image j begin, and where the last ends
  Tensor sizes;   // [n, 2] f32: height and width of all images of a row

  auto tensors() const { return std::tie(ends, begins, sizes); }
};

struct CropOptions {
  int height = 28, width = 28;
  int sampling_ratio = 1;  // samples per cell and axis, averaged; 0: as roi_align's
  bool aligned = true;     // as roi_align's
};
// y [r, height, width] f32: region rois[i], [r, 4] f32, of binary image which[i] (i32) of row images[i] (i32), as
// roi_align gives it for a map of zeros and ones of the size of the image; 0 where images[i] or which[i] is negative.
// Throws Error where shapes or types do not fit; on a CPU also where there is no such image, whose crop is NaN on a
// GPU.
void crop_runs(Context& context, const RunImages& runs, const Tensor& rois, const Tensor& images, const Tensor& which,
               const CropOptions& options, const Tensor& y);

// Sets weights [r] f32 to 0 where binary image which[i] of row images[i] has no runs, not even one of zeros: nothing is
// known of its pixels. Throws Error as crop_runs does.
void mask_out_unknown_runs(Context& context, const RunImages& runs, const Tensor& images, const Tensor& which,
                           const Tensor& weights);

namespace cpu {
void crop_runs(Context&, const RunImages&, const Tensor& rois, const Tensor& images, const Tensor& which,
               const CropOptions&, const Tensor& y);
void mask_out_unknown_runs(Context&, const RunImages&, const Tensor& images, const Tensor& which,
                           const Tensor& weights);
}  // namespace cpu

namespace cuda {
decltype(cpu::crop_runs) crop_runs;
decltype(cpu::mask_out_unknown_runs) mask_out_unknown_runs;
}  // namespace cuda

}  // namespace dtrain
