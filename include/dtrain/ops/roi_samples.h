// Training samples (regions with targets) of a two-stage detector's heads.
#pragma once

#include <tuple>

#include "dtrain/ops/boxes.h"
#include "dtrain/ops/match_boxes.h"

namespace dtrain {

// A fixed number s = total of rows per image: positives, then background, both in box order, then padding. [n * s, ...]
struct RoiSamples {
  Tensor rois;     // [n * s, 4] f32; padding is 0
  Tensor images;   // [n * s] i32: image of a row; -1: padding
  Tensor classes;  // [n * s] i32: class of its ground truth; 0: background, -1: padding
  Tensor truth;    // [n * s] i32: index of the ground truth within its image; -1: none
  Tensor deltas;   // [n * s, 4] f32: box deltas of the ground truth from the region; 0: none
  Tensor totals;   // [2] f32: valid rows and positives of the whole batch

  auto tensors() const { return std::tie(rois, images, classes, truth, deltas, totals); }
};

// boxes [n, t, 4], matched [n, t] i32 after sample_matches, truth [n, g, 4], truth_classes [n, g] i32. Boxes beyond an
// image's rows are dropped; entries of `matched` >= g count as kIgnored. Throws Error for mismatched shapes or types.
void gather_samples(Context& context, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder& coder, const RoiSamples& samples);

}  // namespace dtrain
