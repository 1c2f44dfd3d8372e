// Masked losses over a fixed-size batch: weighted sums over a divisor that only the device knows. All are [1] f32,
// accumulated in double. Elements of weight 0 are ignored, whatever their value. Throw Error for mismatched shapes or
// types.
#pragma once

#include <tuple>

#include "dtrain/autograd/tape.h"

namespace dtrain {

// Divisor of a sum: `constant` times max(count, 1), `count` [1] f32, or `constant` if `count` is undefined.
struct LossDivisor {
  float constant = 1;
  Tensor count{};

  auto tensors() const { return std::tie(count); }
};

// sum of weights * (max(x, 0) - x * targets + log(1 + exp(-|x|))). x of any shape and floating-point type; targets f32
// of its shape, weights f32 of its shape or [x.dim(0)], one per row.
Var sigmoid_cross_entropy(Tape& tape, const Var& x, const Tensor& targets, const Tensor& weights,
                          const LossDivisor& divisor);
// sum of weights[i] * huber(x[i, j] - targets[i, j]), where huber(d) = d^2 / (2 beta) below beta, |d| - beta / 2 above
// (beta 0: |d|). x and targets [n, ...], weights [n] f32.
Var smooth_l1(Tape& tape, const Var& x, const Tensor& targets, const Tensor& weights, float beta,
              const LossDivisor& divisor);
// x [n, a, k, b], classes [n] i32 -> [n, a, b]: slice of each row's class; zero, without gradient, for negative
// classes. With `a` = 1 per-class boxes, with `b` = 1 masks in NHWC. A class >= k throws on a CPU; on a GPU its row is
// NaN and without gradient.
Var select_class(Tape& tape, const Var& x, const Tensor& classes);
// For softmax_cross_entropy's mean over unmasked rows see loss.h.

}  // namespace dtrain
