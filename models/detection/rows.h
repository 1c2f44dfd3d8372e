// Rows of boxes and scores, image by image.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain::models {

// Rows [n, k, ...] of x [n, t, ...], or of one x [1, t, ...] for all images, by indices [n, k] i32; a negative one
// gives zeros.
Tensor rows_of(Context& context, const Tensor& x, const Tensor& indices);
// Places [n, k] i32 of the boxes [n, k, 4] whose score [n, k] f32 is above -infinity, in their order, then -1; `counts`
// [n] i32: how many those are.
Tensor places_with_score(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& counts);

}  // namespace dtrain::models
