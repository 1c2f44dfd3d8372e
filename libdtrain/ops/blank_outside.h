// Padding of images that share a canvas: it is made zero once more after what has moved zero, as a normalisation does.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// Sets to zero, in place, what lies beyond each image: x [n, h, w, c] of any floating-point type, sizes [n, 2] f32, the
// height and width of each image in pixels of x. Throws Error where shapes or types do not fit.
void blank_outside(Context& context, const Tensor& x, const Tensor& sizes);

namespace cpu {
void blank_outside(Context&, const Tensor& x, const Tensor& sizes);
}  // namespace cpu

namespace cuda {
decltype(cpu::blank_outside) blank_outside;
}  // namespace cuda

}  // namespace dtrain
