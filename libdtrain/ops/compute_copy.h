// Copies of the weights in the type and with the channels that ops compute with. No gradients.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain {

// y = x rounded to nearest, ties to even; x f32, y f32, bf16 or f16 of the same shape.
void round_values(Context& context, const Tensor& x, const Tensor& y);
// The same from filters x [k, r, s, c] to y [k, r, s, c'], c' >= c, whose further channels are set to zero.
void pad_channels(Context& context, const Tensor& x, const Tensor& y);

namespace cpu {
void round_values(Context&, const Tensor& x, const Tensor& y);
void pad_channels(Context&, const Tensor& x, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::round_values) round_values;
decltype(cpu::pad_channels) pad_channels;
}  // namespace cuda

}  // namespace dtrain
