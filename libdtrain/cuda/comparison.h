// Numerical comparison of two implementations on a GPU, on random inputs.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain::cuda {

// Uniform random numbers in [-1, 1), deterministic per seed. `dtype` is a floating-point type.
Tensor random_tensor(Context& context, Shape shape, DType dtype, uint64_t seed);

// Whether two results of one shape and type agree within rounding: relative L2 error below 2^-8. Rounding to f16 gives
// 2^-12, to bf16 2^-9; an error at image borders or in one tile is far larger. Waits for the device.
bool is_close(Context& context, const Tensor& x, const Tensor& expected);

}  // namespace dtrain::cuda
