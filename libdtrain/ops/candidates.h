// Detection candidates before NMS: score thresholds and small-box filters. No gradient.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// Sets scores [n] f32 to -infinity for boxes [n, 4] with a side that is 0 or shorter than `min_side`. In place.
void drop_small_boxes(Context& context, const Tensor& boxes, float min_side, const Tensor& scores);

// probabilities [n * p, c] f32 of p regions in each of n images, counts [n] i32 of valid regions -> scores [n, p * c]:
// probabilities above `threshold`; -infinity below it, for class 0 (background) and for invalid regions. passed [n]
// i32: number of scores above the threshold.
void class_candidates(Context& context, const Tensor& probabilities, const Tensor& counts, float threshold,
                      const Tensor& scores, const Tensor& passed);
// probabilities [n * p, c] f32 -> scores [n, c, p]: as class_candidates in class-major order, all regions valid. All of
// these throw Error for mismatched shapes or types.
void scores_by_class(Context& context, const Tensor& probabilities, float threshold, const Tensor& scores);
// indices [n, k] i32 into [p * c] -> classes [n, k] i32: index modulo c; -1 for negative indices.
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
