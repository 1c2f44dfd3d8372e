// Local response normalisation over neighbouring channels (Krizhevsky et al. 2012, section 3.3).
//   s[c] = bias + alpha * sum over j from c - radius to c + radius of x[j]^2,  y[c] = x[c] / s[c]^beta
#pragma once

#include "dtrain/autograd/tape.h"

namespace dtrain {

// TensorFlow's parameters. In torch, `size` is 2 * radius + 1 and `alpha` is this alpha times `size`.
struct LocalResponseNormOptions {
  int radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;
};

// x [..., c] -> y of its shape and type. Throws Error for rank 0, a negative radius or alpha, or a bias that is not
// positive.
Var local_response_norm(Tape& tape, const Var& x, const LocalResponseNormOptions& options = {});

}  // namespace dtrain
