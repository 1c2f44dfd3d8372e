// Gives each ground truth a box of its own, whatever their overlap is: SSD's first rule of matching (Liu et al. 2016).
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// boxes [t, 4], truth [n, g, 4] with counts [n] i32, beyond which it is padding; matched [n, t] i32 as match_boxes
// leaves it. Each ground truth takes the box with which its IoU is the largest (ties: the first box), unless it meets
// none: the entry of that box becomes its index. Where several take one box, the first ground truth has it. In place.
// Throws Error where shapes or types do not fit.
void claim_boxes(Context& context, const Tensor& boxes, const Tensor& truth, const Tensor& counts,
                 const Tensor& matched);

namespace cpu {
void claim_boxes(Context&, const Tensor& boxes, const Tensor& truth, const Tensor& counts, const Tensor& matched);
}  // namespace cpu

namespace cuda {
decltype(cpu::claim_boxes) claim_boxes;
}  // namespace cuda

}  // namespace dtrain
