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

namespace cpu {
// `sums`: s, f32 of x's shape.
void local_response_norm(Context&, const Tensor& x, const LocalResponseNormOptions&, const Tensor& y,
                         const Tensor& sums);
// dx[c] = dy[c] / s[c]^beta - 2 * alpha * beta * x[c] * (sum over the window of dy[j] * x[j] / s[j]^(beta + 1))
void local_response_norm_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& sums,
                              const LocalResponseNormOptions&, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::local_response_norm) local_response_norm;
decltype(cpu::local_response_norm_grad) local_response_norm_grad;
}  // namespace cuda

}  // namespace dtrain
