#include "libdtrain/ops/claim_boxes.h"

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/box_checks.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/match_math.h"

namespace dtrain {

void claim_boxes(Context& context, const Tensor& boxes, const Tensor& truth, const Tensor& counts,
                 const Tensor& matched) {
  require_rank("claim_boxes: matched [n, t]", matched, 2, DType::i32);
  require_rank("claim_boxes: truth [n, g, 4]", truth, 3, DType::f32);
  const int64_t n = matched.dim(0);
  require_tensor("claim_boxes: boxes", boxes, {matched.dim(1), 4}, DType::f32);
  require_tensor("claim_boxes: truth", truth, {n, truth.dim(1), 4}, DType::f32);
  require_tensor("claim_boxes: counts", counts, {n}, DType::i32);
  if (matched.count() > 0 && truth.count() > 0) DT_DISPATCH(context, claim_boxes)(boxes, truth, counts, matched);
}

namespace cpu {
namespace {

// Box of largest IoU with a ground truth, or -1.
int64_t claimed_box(const float* boxes, int64_t t, const Box& own) {
  const float area = box_area(own, 0);
  float best = 0;
  int64_t claimed = -1;
  for (int64_t i = 0; i < t; ++i) {
    const Box box = box_at(boxes + 4 * i);
    const float iou = box_overlap(box, box_area(box, 0), own, area, 0);
    if (iou > best) best = iou, claimed = i;
  }
  return claimed;
}

}  // namespace

void claim_boxes(Context&, const Tensor& boxes, const Tensor& truth, const Tensor& counts, const Tensor& matched) {
  const int64_t n = matched.dim(0), t = matched.dim(1), g = truth.dim(1);
  const float* const from = boxes.data<float>();
  parallel_ranges(
      n,
      [&](int64_t begin, int64_t end) {
        for (int64_t image = begin; image < end; ++image)
          for (int64_t i = within(counts.data<int32_t>()[image], g) - 1; i >= 0; --i) {
            const int64_t box = claimed_box(from, t, box_at(truth.data<float>() + 4 * (image * g + i)));
            if (box >= 0) matched.data<int32_t>()[image * t + box] = static_cast<int32_t>(i);
          }
      },
      4 * t * g);
}

}  // namespace cpu
}  // namespace dtrain
