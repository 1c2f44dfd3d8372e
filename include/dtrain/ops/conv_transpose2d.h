// Transposed convolution: the dgrad of a convolution as a forward op.
#pragma once

#include "dtrain/ops/conv2d.h"

namespace dtrain {

// x [n, h, w, k], w [k, r, s, c] (filter of the forward convolution) -> [n, (h - 1) * stride.h - top - bottom + r, (w -
// 1) * stride.w - left - right + s, c]. `bias`: null or [c], f32. Dilation and groups are 1. Throws Error for
// mismatched shapes or types.
Var conv_transpose2d(Tape& tape, const Var& x, const Var& w, const Var* bias, const Conv2dOptions& options = {});

}  // namespace dtrain
