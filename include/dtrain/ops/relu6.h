// ReLU6 (Krizhevsky 2010), the activation of MobileNet.
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// min(max(x, 0), 6), of any shape and floating-point type. NaN is propagated.
Var relu6(Tape& tape, const Var& x);

}  // namespace dtrain
