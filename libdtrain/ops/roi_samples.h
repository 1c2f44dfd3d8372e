// The regions that the heads of a two-stage detector are trained on.
#pragma once

#include <tuple>

#include "libdtrain/ops/boxes.h"
#include "libdtrain/ops/match_boxes.h"

namespace dtrain {

// Rows of fixed number s = total per image: first the positives, then background, both in the order of the boxes, then
// padding. [n * s, ...]
struct RoiSamples {
  Tensor rois;     // [n * s, 4] f32; padding is 0
  Tensor images;   // [n * s] i32: the image of a row; -1: padding
  Tensor classes;  // [n * s] i32: the class of its ground truth, 0 background, -1 padding
  Tensor truth;    // [n * s] i32: the ground truth within its image; -1 where there is none
  Tensor deltas;   // [n * s, 4] f32: what the box of the ground truth is from the region; 0 where there is none
  Tensor totals;   // [2] f32: rows that are no padding, and positives, of the whole batch

  auto tensors() const { return std::tie(rois, images, classes, truth, deltas, totals); }
};

// boxes [n, t, 4], matched [n, t] i32 as sample_matches leaves it, truth [n, g, 4], truth_classes [n, g] i32. What
// does not fit into an image's rows is left out; entries of `matched` that are not below g count as kIgnored. Throws
// Error where shapes or types do not fit.
void gather_samples(Context& context, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder& coder, const RoiSamples& samples);
namespace cpu {
void gather_samples(Context&, const Tensor& boxes, const Tensor& matched, const Tensor& truth,
                    const Tensor& truth_classes, const BoxCoder&, const RoiSamples&);
}  // namespace cpu

namespace cuda {
decltype(cpu::gather_samples) gather_samples;
}  // namespace cuda

}  // namespace dtrain
