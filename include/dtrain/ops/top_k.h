// Top-k selection per row, and non-maximum suppression.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// scores [rows, n] of any floating-point type -> values [rows, k] f32 and indices [rows, k] i32, descending (ties:
// lower index first; NaN counts as -infinity; -0 equals 0). Missing entries are -infinity and -1. `counts`: undefined,
// or [rows] i32, valid elements per row. Throws Error for mismatched shapes or types.
void top_k(Context& context, const Tensor& scores, const Tensor& counts, const Tensor& values, const Tensor& indices);

struct NmsOptions {
  float threshold = 0.5f;  // IoU with a kept box of the same group above which a box is suppressed
  bool plus_one = false;   // as BoxCoder::plus_one
};
// boxes [rows, k, 4] in descending order of scores [rows, k] f32, -infinity marking padding; groups [rows, k] i32 or
// undefined: boxes of different groups do not suppress each other -> kept [rows, m] i32, indices of the first m kept
// boxes in order, then -1; counts [rows] i32, their number. Throws Error for mismatched shapes or types.
void nms(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& groups, const NmsOptions& options,
         const Tensor& kept, const Tensor& counts);

}  // namespace dtrain
