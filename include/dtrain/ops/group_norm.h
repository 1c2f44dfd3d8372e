// Group normalisation over groups of channels of a sample (Wu and He 2018), and layer normalisation over the last
// dimension (Ba, Kiros and Hinton 2016), its case of one group and one pixel.
//   m = mean(x), v = mean((x - m)^2) over a group;  y = gamma * (x - m) / sqrt(v + eps) + beta, per channel
// Identical in training and eval: there are no running statistics.
#pragma once

#include <tuple>

#include "dtrain/autograd/tape.h"

namespace dtrain {

// x [n, h, w, c] or [n, c] of any floating-point type, also of y; gamma and beta [c], f32. Throws Error for other
// shapes or types, an empty x, or `groups` that does not divide c.
Var group_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, int groups, float epsilon = 1e-5f);
// x [..., c]; otherwise as group_norm.
Var layer_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, float epsilon = 1e-5f);

// Tensors saved for backward: x as [n, pixels, c], gamma [c] in f32.
struct GroupNormSaved {
  Tensor x, gamma;
  Tensor mean, inv_std;  // [n, groups], f32

  auto tensors() const { return std::tie(x, gamma, mean, inv_std); }
};

// Destinations of gradients [c], f32, overwritten or accumulated; undefined if not needed.
struct GroupNormParameterGrads {
  Tensor dgamma{}, dbeta{};
  bool add_dgamma = false, add_dbeta = false;

  auto tensors() const { return std::tie(dgamma, dbeta); }
};

}  // namespace dtrain
