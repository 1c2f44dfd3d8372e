// Rows of boxes and scores, image by image.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain::models {

// Rows [n, k, ...] of x [n, t, ...], or of one x [1, t, ...] for all images, by indices [n, k] i32; a negative one
// gives zeros.
Tensor rows_of(Context& context, const Tensor& x, const Tensor& indices);

}  // namespace dtrain::models
