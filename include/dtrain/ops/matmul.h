// The fully connected layer: y = x w^T + b.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// x [n, in], w [out, in] -> [n, out], all of one type; bias null or [out], f32. Throws where shapes or types do not
// fit.
Var linear(Tape& tape, const Var& x, const Var& w, const Var* bias = nullptr);

}  // namespace dtrain
