#include "libdtrain/ops/anchor_targets.h"

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/anchor_targets_math.h"

namespace dtrain {

void anchor_targets(Context& context, const Tensor& matched, const Tensor& truth, const Tensor& anchors,
                    const BoxCoder& coder, const AnchorTargets& targets) {
  const Shape& shape = matched.shape();
  DT_CHECK(shape.rank() == 2 && truth.shape().rank() == 3 && truth.dim(0) == shape[0] && truth.dim(2) == 4 &&
               anchors.shape() == (Shape{shape[1], 4}),
           "anchor_targets: matched ", shape, ", truth ", truth.shape(), " and anchors ", anchors.shape(),
           "; expected [n, t], [n, g, 4] and [t, 4]");
  DT_CHECK(targets.labels.shape() == shape && targets.drawn.shape() == shape && targets.objects.shape() == shape &&
               targets.deltas.shape() == (Shape{shape[0], shape[1], 4}) && targets.count.shape() == Shape{1},
           "anchor_targets: labels ", targets.labels.shape(), ", drawn ", targets.drawn.shape(), ", objects ",
           targets.objects.shape(), ", deltas ", targets.deltas.shape(), " and count ", targets.count.shape(), " for ",
           shape);
  DT_CHECK(matched.dtype() == DType::i32, "anchor_targets: matched of type ", matched.dtype(), "; expected i32");
  DT_DISPATCH(context, anchor_targets)(matched, truth, anchors, coder, targets);
}

void cpu::anchor_targets(Context&, const Tensor& matched, const Tensor& truth, const Tensor& anchors,
                         const BoxCoder& coder, const AnchorTargets& targets) {
  const int64_t t = matched.dim(1), g = truth.dim(1);
  const int32_t* const match = matched.data<int32_t>();
  const float *const boxes = truth.data<float>(), *const references = anchors.data<float>();
  const AnchorTargetPointers out{targets.labels.data<float>(), targets.drawn.data<float>(),
                                 targets.objects.data<float>(), targets.deltas.data<float>()};
  parallel_ranges(
      matched.count(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          write_anchor_target(out, i, match[i], boxes + i / t * g * 4, references + i % t * 4, coder);
      },
      4);
  int64_t drawn = 0;
  for (int64_t i = 0; i < matched.count(); ++i) drawn += is_drawn(match[i]);
  targets.count.data<float>()[0] = static_cast<float>(drawn);
}

}  // namespace dtrain
