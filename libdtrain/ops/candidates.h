// Candidates for detections: which boxes of which class are worth a look. No gradient.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Makes -infinity of the scores [n] f32 of boxes [n, 4] with a side that is 0 or shorter than `min_side`. In place.
void drop_small_boxes(Context& context, const Tensor& boxes, float min_side, const Tensor& scores);

// probabilities [n * p, c] f32 of p regions in each of n images, of which counts [n] i32 are there -> scores [n, p *
// c]: the probability where it is above `threshold`, -infinity where it is not, for class 0, which is background, and
// for regions beyond the count. passed [n] i32: how many are above it.
void class_candidates(Context& context, const Tensor& probabilities, const Tensor& counts, float threshold,
                      const Tensor& scores, const Tensor& passed);
// probabilities [n * p, c] f32 -> scores [n, c, p]: the same class by class, of images whose regions are all there. All
// of these throw Error where shapes or types do not fit.
void scores_by_class(Context& context, const Tensor& probabilities, float threshold, const Tensor& scores);
// indices [n, k] i32 into [p * c] -> classes [n, k] i32: the index modulo c; -1 where it is negative.
void candidate_classes(Context& context, const Tensor& indices, int64_t c, const Tensor& classes);

namespace cpu {
void drop_small_boxes(Context&, const Tensor& boxes, float min_side, const Tensor& scores);
void class_candidates(Context&, const Tensor& probabilities, const Tensor& counts, float threshold,
                      const Tensor& scores, const Tensor& passed);
void scores_by_class(Context&, const Tensor& probabilities, float threshold, const Tensor& scores);
void candidate_classes(Context&, const Tensor& indices, int64_t c, const Tensor& classes);
}  // namespace cpu

namespace cuda {
decltype(cpu::drop_small_boxes) drop_small_boxes;
decltype(cpu::class_candidates) class_candidates;
decltype(cpu::scores_by_class) scores_by_class;
decltype(cpu::candidate_classes) candidate_classes;
}  // namespace cuda

}  // namespace dtrain
