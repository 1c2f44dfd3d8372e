// Nearest-neighbour up-sampling.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// x [n, h, w, c] -> [n, height, width, c]: row i is row floor(i * h / height) of x, as PyTorch's mode "nearest", which
// rounds the ratio. `base`, optional, has the shape and type of the result and is added: the top-down path of an FPN in
// one pass. Throws Error if the result is smaller than x or `base` does not match.
Var upsample_nearest(Tape& tape, const Var& x, int64_t height, int64_t width, const Var* base = nullptr);

}  // namespace dtrain
