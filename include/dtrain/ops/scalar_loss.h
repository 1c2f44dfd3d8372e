// Scalar losses: mean squared error and weighted sum of losses.
#pragma once

#include <vector>

#include "dtrain/autograd/tape.h"

namespace dtrain {

// [1] f32: mean of (x - target)^2 over all elements. x of any shape and floating-point type, target f32 of x's shape.
// Throws if shapes differ.
Var mean_squared_error(Tape& tape, const Var& x, const Tensor& target);

// [1] f32: weights[0] * losses[0] + weights[1] * losses[1] + ..., losses [1] f32, summed in this order. Throws if there
// are no losses or the counts differ.
Var weighted_sum(Tape& tape, const std::vector<Var>& losses, const std::vector<float>& weights);

}  // namespace dtrain
