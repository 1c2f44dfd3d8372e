// Matching of boxes with ground truth by IoU, and sampling of a fixed number of them for a loss. Batched over images;
// never waits for the device.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// Entry of `matched`: index of the ground truth, >= 0, or one of these.
constexpr int32_t kBackground = -1, kIgnored = -2;

struct MatchOptions {
  float positive = 0.7f;  // minimum IoU of a match with the ground truth of largest IoU (ties: the first)
  float negative = 0.3f;  // IoU below which a box is background; ignored in between
  // Low-quality matches: also matches boxes whose IoU is the largest non-zero one of some ground truth, with the ground
  // truth that is best *for the box*.
  bool keep_best = false;
  // TensorPack's order: after keep_best, boxes below `negative` become background nevertheless.
  bool negative_last = false;
  // Boxes that extend beyond their image are ignored, and not considered by keep_best.
  bool inside_only = false;
  bool plus_one = false;  // as BoxCoder::plus_one
};

// boxes [t, 4], shared by all images, or [n, t, 4], zero boxes being padding and ignored; truth [n, g, 4], padded
// beyond counts [n] i32; sizes [n, 2] f32, height and width of images, for inside_only; valid [n] i32 or undefined:
// boxes per image, others are ignored -> matched [n, t] i32. Without ground truth all boxes that are not ignored are
// background. Boxes with NaN corners overlap nothing. Throws Error for mismatched shapes or types, or `negative` >
// `positive`.
void match_boxes(Context& context, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions& options, const Tensor& matched);

struct SampleOptions {
  int total = 256;      // boxes per image, fewer if not available
  int positives = 128;  // maximum of positives; background fills up to `total`
  // Random draws depend on (StepScalars::seed, StepScalars::step, stream, first_row + image, box).
  uint64_t stream = 0;
  uint64_t first_row = 0;
};
// Sets entries of matched [n, t] that are not sampled to kIgnored, in place. Uniform over subsets: boxes with the
// smallest 32-bit random keys are sampled, ties to the lower index. Throws Error if positives > total.
void sample_matches(Context& context, const SampleOptions& options, const Tensor& matched);

}  // namespace dtrain
