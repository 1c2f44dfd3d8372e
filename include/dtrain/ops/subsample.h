// Strided subsampling: y[n, p, q, c] = x[n, offset + stride * p, offset + stride * q, c], or 0 outside of the image.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

struct SubsampleOptions {
  int stride = 1, offset = 0;
};

// [n, h, w, c] -> [n, ceil(h / stride), ceil(w / stride), c] of x's type, 0 <= offset < stride. Throws Error for
// another rank or invalid numbers.
Var subsample(Tape& tape, const Var& x, int stride, int offset);

}  // namespace dtrain
