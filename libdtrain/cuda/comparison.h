// Comparing two ways of computing something on a GPU, on numbers that mean nothing.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain::cuda {

// A tensor of numbers in [-1, 1) without an order, others for each seed; of a floating-point type.
Tensor random_tensor(Context& context, Shape shape, DType dtype, uint64_t seed);

// Whether results of two ways, of one shape and type, differ by no more than roundings: by 2^-8 of their size on
// average. Roundings to 16 bits are 2^-12 or, in bf16, 2^-9; what is wrong at the border of the images, or in one tile,
// is off by far. Waits for the device.
bool is_close(Context& context, const Tensor& x, const Tensor& expected);

}  // namespace dtrain::cuda
