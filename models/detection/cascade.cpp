#include "models/detection/cascade.h"

#include "libdtrain/ops/candidates.h"
#include "models/detection/rows.h"

namespace dtrain::models {
namespace {

// Compacts boxes [n, s, 4]: drops boxes of zero area and pads with zeros.
Tensor with_area(Context& context, const Tensor& boxes) {
  const int64_t n = boxes.dim(0), s = boxes.dim(1);
  const Tensor scores = context.zeros({n, s});
  drop_small_boxes(context, boxes.view({n * s, 4}), 0, scores.view({n * s}));
  return rows_of(context, boxes, places_with_score(context, boxes, scores, context.empty({n}, DType::i32)));
}

}  // namespace

RoiSamples empty_regions(Context& context, int64_t places) {
  return {context.empty({places, 4}),          context.empty({places}, DType::i32), context.empty({places}, DType::i32),
          context.empty({places}, DType::i32), context.empty({places, 4}),          context.empty({2})};
}

Tensor refined_boxes(Context& context, const Tensor& deltas, const Tensor& rois, const Tensor& sizes,
                     const BoxCoder& coder) {
  const int64_t r = rois.dim(0);
  const Tensor boxes = context.empty({r, 1, 4});
  decode_boxes(context, deltas.view({r, 1, 4}), rois, sizes, coder, boxes);
  return boxes.view({r, 4});
}

RoiSamples refined_regions(Context& context, const Tensor& boxes, const DetectionTruth& truth, float iou,
                           const BoxCoder& coder) {
  const int64_t n = truth.boxes.dim(0), s = boxes.dim(0) / n;
  const Tensor sound = with_area(context, boxes.view({n, s, 4})), matched = context.empty({n, s}, DType::i32);
  match_boxes(context, sound, {}, truth.boxes, truth.counts, truth.sizes, {.positive = iou, .negative = iou}, matched);
  const RoiSamples regions = empty_regions(context, n * s);
  gather_samples(context, sound, matched, truth.boxes, truth.classes, coder, regions);
  return regions;
}

}  // namespace dtrain::models
