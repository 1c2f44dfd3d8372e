// Losses over a batch of fixed size of which only some elements count: sums of weighted terms over a divisor that is
// known on the device alone. All are [1] f32, added up in double precision. An element of weight 0 does not count,
// whatever it is. Throw Error where shapes or types do not fit.
#pragma once

#include <tuple>

#include "libdtrain/autograd/tape.h"

namespace dtrain {

// What a sum is divided by: `constant` times, where it is defined, the element of `count` [1] f32 or 1, whichever is
// larger.
struct LossDivisor {
  float constant = 1;
  Tensor count{};

  auto tensors() const { return std::tie(count); }
};

// sum of weights * (max(x, 0) - x * targets + log(1 + exp(-|x|))). x of any shape and floating-point type; targets of
// its shape and weights of its shape or [x.dim(0)], one per row, in f32.
Var sigmoid_cross_entropy(Tape& tape, const Var& x, const Tensor& targets, const Tensor& weights,
                          const LossDivisor& divisor);
// sum of weights[i] * huber(x[i, j] - targets[i, j]), where huber(d) = d^2 / (2 beta) below beta, |d| - beta / 2 above
// (beta 0: |d|). x and targets [n, ...], weights [n] f32.
Var smooth_l1(Tape& tape, const Var& x, const Tensor& targets, const Tensor& weights, float beta,
              const LossDivisor& divisor);
// x [n, a, k, b], classes [n] i32 -> [n, a, b]: what belongs to a row's class; zero, without gradient, where the class
// is negative. With `a` = 1 boxes of each class, with b = 1 masks in NHWC. A class that is not below k throws on a CPU;
// on a GPU its row is NaN and without gradient.
Var select_class(Tape& tape, const Var& x, const Tensor& classes);
// softmax_cross_entropy's loss is the mean over rows that count: see loss.h.

namespace cpu {
void sigmoid_cross_entropy(Context&, const Tensor& x, const Tensor& targets, const Tensor& weights, const LossDivisor&,
                           const Tensor& loss);
void sigmoid_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& targets,
                                const Tensor& weights, const LossDivisor&, const Tensor& dx, bool add);
void smooth_l1(Context&, const Tensor& x, const Tensor& targets, const Tensor& weights, float beta, const LossDivisor&,
               const Tensor& loss);
void smooth_l1_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& targets, const Tensor& weights,
                    float beta, const LossDivisor&, const Tensor& dx, bool add);
void select_class(Context&, const Tensor& x, const Tensor& classes, const Tensor& y);
void select_class_grad(Context&, const Tensor& dy, const Tensor& classes, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::sigmoid_cross_entropy) sigmoid_cross_entropy;
decltype(cpu::sigmoid_cross_entropy_grad) sigmoid_cross_entropy_grad;
decltype(cpu::smooth_l1) smooth_l1;
decltype(cpu::smooth_l1_grad) smooth_l1_grad;
decltype(cpu::select_class) select_class;
decltype(cpu::select_class_grad) select_class_grad;
}  // namespace cuda

}  // namespace dtrain
