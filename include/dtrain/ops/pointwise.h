// Element-wise ops and arithmetic that the tape itself needs.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// Inputs of one op have one type, also of the output.

// max(x, 0), of any shape. NaN is propagated.
Var relu(Tape& tape, const Var& x);
// a + b, of equal shapes; throws where they differ.
Var add(Tape& tape, const Var& a, const Var& b);
// relu(a + b) in one pass.
Var add_relu(Tape& tape, const Var& a, const Var& b);
// In training: zeroes each element with probability `rate`, 0 <= rate < 1, and scales the others by 1 / (1 - rate);
// identity in eval. The mask depends on (StepScalars::seed, step, call within the step, element).
Var dropout(Tape& tape, const Var& x, float rate);
// [n, ...] -> [n, product of the rest]
Var flatten(Tape& tape, const Var& x);
// Same elements in another shape of equal count.
Var reshape(Tape& tape, const Var& x, const Shape& shape);

// y = (x - mean[c]) * scale[c] of u8 or f32 pixels; x [n, h, w, 3], y [n, h, w, channels], zero-padded from channel 3
// on: GPU convolutions prefer pixels of 16 bytes. No gradient: x is data.
struct PixelNormalization {
  float mean[3] = {0, 0, 0};
  float scale[3] = {1, 1, 1};
  DType dtype = DType::f32;
  int channels = 3;
};
Tensor normalize_pixels(Context& context, const Tensor& x, const PixelNormalization& options);

// y += x; y may be f32 if x has 16 bits.
void accumulate(Context& context, const Tensor& x, const Tensor& y);
// x *= factor, for f32 x of any shape; throws Error for another type.
void scale_by(Context& context, const Tensor& x, float factor);
// dy, one f32 element, = loss scale of the context's StepScalars.
void seed_loss_gradient(Context& context, const Tensor& dy);

}  // namespace dtrain
