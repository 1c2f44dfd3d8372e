// Gathering of boxes and scores per image.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain::models {

// Gathers rows [n, k, ...] of x [n, t, ...], or of one x [1, t, ...] for all images, by indices [n, k] i32. Negative
// indices give zeros.
Tensor rows_of(Context& context, const Tensor& x, const Tensor& indices);
// Indices [n, k] i32 of the boxes [n, k, 4] with score [n, k] f32 above -infinity, in order, then -1. `counts` [n] i32:
// number of such boxes.
Tensor places_with_score(Context& context, const Tensor& boxes, const Tensor& scores, const Tensor& counts);

}  // namespace dtrain::models
