// Normalisation within one sample: over groups of channels (Wu and He 2018), and over the last dimension (layer norm,
// Ba, Kiros and Hinton 2016). The second is the first with one group and one pixel.
//   m = mean(x), v = mean((x - m)^2) over a group;  y = gamma * (x - m) / sqrt(v + eps) + beta, per channel
// It is the same in training and in eval: there are no running statistics.
#pragma once

#include <tuple>

#include "libdtrain/autograd/tape.h"

namespace dtrain {

// x [n, h, w, c] or [n, c] of any floating-point type, that of y; gamma and beta [c], f32. Throws Error where shapes or
// types are others, x has no elements, or `groups` does not divide c.
Var group_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, int groups, float epsilon = 1e-5f);
// x [..., c]; all else as above.
Var layer_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, float epsilon = 1e-5f);

// What the gradients are made from: x as [n, pixels, c], gamma [c] in f32.
struct GroupNormSaved {
  Tensor x, gamma;
  Tensor mean, inv_std;  // [n, groups], f32

  auto tensors() const { return std::tie(x, gamma, mean, inv_std); }
};

// Where the gradients [c], f32, go, each stored or added to what is there; undefined where it is not wanted.
struct GroupNormParameterGrads {
  Tensor dgamma{}, dbeta{};
  bool add_dgamma = false, add_dbeta = false;

  auto tensors() const { return std::tie(dgamma, dbeta); }
};

namespace cpu {
// Writes saved.mean and saved.inv_std too.
void group_norm(Context&, const GroupNormSaved& saved, const Tensor& beta, float epsilon, const Tensor& y);
void group_norm_grad(Context&, const Tensor& dy, const GroupNormSaved& saved, const Tensor& dx, bool add);
// dgamma = sum(dy * (x - m) * inv_std) and dbeta = sum(dy), over n and pixels
void group_norm_parameter_grad(Context&, const Tensor& dy, const GroupNormSaved& saved, const GroupNormParameterGrads&);
}  // namespace cpu

namespace cuda {
decltype(cpu::group_norm) group_norm;
decltype(cpu::group_norm_grad) group_norm_grad;
decltype(cpu::group_norm_parameter_grad) group_norm_parameter_grad;
}  // namespace cuda

}  // namespace dtrain
