// Matches boxes with ground truth by intersection over union, and draws a fixed number of them for a loss. Images of a
// batch are rows; nothing here waits for the device.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// What `matched` holds for a box: the index of its ground truth, at least 0, or one of these.
constexpr int32_t kBackground = -1, kIgnored = -2;

struct MatchOptions {
  float positive = 0.7f;  // a box is matched with the ground truth of the largest IoU (ties: the first) from here on
  float negative = 0.3f;  // below it is background; between them it is ignored
  // Boxes whose IoU is the largest that some ground truth has with any box, and not 0, are matched too, whatever it is:
  // with the ground truth that is the best one *for the box*.
  bool keep_best = false;
  // TensorPack's order: after keep_best, boxes below `negative` are background all the same.
  bool negative_last = false;
  // Boxes that reach out of their image are ignored, and count as nobody's best.
  bool inside_only = false;
  bool plus_one = false;  // as BoxCoder::plus_one
};

// boxes [t, 4], the same for all images, or [n, t, 4], of which those that are zeros are padding, and ignored; truth
// [n, g, 4] with counts [n] i32, beyond which it is padding; sizes [n, 2] f32, height and width of the images, needed
// for inside_only alone; valid [n] i32 or undefined: how many boxes of each image there are, the others are ignored ->
// matched [n, t] i32. Without ground truth all that are not ignored are background. A box with NaN for a corner has no
// overlap. Throws Error where shapes or types do not fit, or `negative` is above `positive`.
void match_boxes(Context& context, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions& options, const Tensor& matched);

struct SampleOptions {
  int total = 256;      // boxes per image, or fewer where there are fewer
  int positives = 128;  // of which matched ones, at most; background fills up to `total`
  // What is drawn is a function of (StepScalars::seed, StepScalars::step, stream, first_row + image, box).
  uint64_t stream = 0;
  uint64_t first_row = 0;
};
// Makes kIgnored of all entries of matched [n, t] that are not drawn. Each subset is as likely as any other: those
// boxes are drawn that have the smallest random numbers of 32 bits, ties going to the lower index. In place. Throws
// Error where there are more positives than boxes in all.
void sample_matches(Context& context, const SampleOptions& options, const Tensor& matched);

namespace cpu {
void match_boxes(Context&, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions&, const Tensor& matched);
void sample_matches(Context&, const SampleOptions&, const Tensor& matched);
}  // namespace cpu

namespace cuda {
decltype(cpu::match_boxes) match_boxes;
decltype(cpu::sample_matches) sample_matches;
}  // namespace cuda

}  // namespace dtrain
