// One pixel of every few: y[n, p, q, c] = x[n, offset + stride * p, offset + stride * q, c], or 0 beyond the image.
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

struct SubsampleOptions {
  int stride, offset;
};

// [n, h, w, c] -> [n, ceil(h / stride), ceil(w / stride), c] of x's type, for any offset from 0 to stride - 1. Throws
// Error where x has another rank or the numbers are others.
Var subsample(Tape& tape, const Var& x, int stride, int offset);

namespace cpu {
void subsample(Context&, const Tensor& x, int stride, int offset, const Tensor& y);
void subsample_grad(Context&, const Tensor& dy, int stride, int offset, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::subsample) subsample;
decltype(cpu::subsample_grad) subsample_grad;
}  // namespace cuda

}  // namespace dtrain
