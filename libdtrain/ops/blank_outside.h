// Zero padding of images in a batch, restored after ops that change zeros, e.g. normalisation.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain {

// Zeroes, in place, the pixels beyond each image: x [n, h, w, c] of any floating-point type, sizes [n, 2] f32: height
// and width of each image in pixels of x. Throws Error for mismatched shapes or types.
void blank_outside(Context& context, const Tensor& x, const Tensor& sizes);

namespace cpu {
void blank_outside(Context&, const Tensor& x, const Tensor& sizes);
}  // namespace cpu

namespace cuda {
decltype(cpu::blank_outside) blank_outside;
}  // namespace cuda

}  // namespace dtrain
