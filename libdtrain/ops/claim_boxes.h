// Best box per ground truth: SSD's first matching rule, which ignores the IoU threshold (Liu et al. 2016).
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// boxes [t, 4], truth [n, g, 4] padded beyond counts [n] i32; matched [n, t] i32 after match_boxes. Assigns each ground
// truth to the box of largest IoU (ties: the first box) unless its IoU is 0: that entry of `matched` becomes the index
// of the ground truth. If several choose one box, the first ground truth wins. In place. Throws Error for mismatched
// shapes or types.
void claim_boxes(Context& context, const Tensor& boxes, const Tensor& truth, const Tensor& counts,
                 const Tensor& matched);

namespace cpu {
void claim_boxes(Context&, const Tensor& boxes, const Tensor& truth, const Tensor& counts, const Tensor& matched);
}  // namespace cpu

namespace cuda {
decltype(cpu::claim_boxes) claim_boxes;
}  // namespace cuda

}  // namespace dtrain
