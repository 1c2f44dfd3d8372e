// Batch normalisation over the channels of NHWC images (Ioffe and Szegedy 2015).
//   train:  m = mean(x), v = mean((x - m)^2) over n,h,w;  y = gamma * (x - m) / sqrt(v + eps) + beta
//           running = momentum * running + (1 - momentum) * batch statistic (the variance unbiased, as torch's, where
//           asked)
//   eval:   the same with the running statistics
//   frozen: as eval, also in training; gradients flow to x, gamma and beta but not into the statistics
#pragma once

#include "libdtrain/autograd/tape.h"

namespace dtrain {

struct BatchNormOptions {
  float epsilon = 1e-5f;
  float momentum = 0.9f;  // share of the old running statistic kept: 1 - torch's momentum
  bool frozen = false;
  bool unbiased_running_variance = true;  // n / (n - 1) on the variance that goes into the running one
};

struct BatchNormState {
  Tensor running_mean{}, running_var{};  // [c], updated in place by training
};

// What follows the normalisation.
enum class Activation { none, relu };

// y = act(bn(x) + residual). x [n,h,w,c]; gamma, beta [c]; `residual` null or of x's shape.
Var batch_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
               const BatchNormOptions& options = {}, Activation activation = Activation::none,
               const Var* residual = nullptr);

// What the forward pass leaves for the backward. Undefined where it is not needed: x where the statistics are constant
// and neither gamma nor beta wants a gradient; y where its sign, the mask of relu, follows from x.
struct BatchNormSaved {
  Tensor x, y, mean, inv_std, gamma, beta;
  Activation activation = Activation::none;
  bool constant_statistics = false;
};
// Each may be undefined where not wanted. dx, dgamma, dbeta are stored or added; dresidual, the gradient behind the
// activation, is stored. Either dx or dresidual may be dy itself; dx is then stored.
struct BatchNormGrads {
  Tensor dx, dgamma, dbeta, dresidual;
  bool add_dx = false, add_dgamma = false, add_dbeta = false;
};

namespace cpu {
// Statistics of x: mean[c] and inv_std[c] = 1 / sqrt(var + eps); running ones are updated.
void batch_norm_statistics(Context&, const Tensor& x, const BatchNormState&, const BatchNormOptions&,
                           const Tensor& mean, const Tensor& inv_std);
// inv_std[c] = 1 / sqrt(var + eps)
void inverse_std(Context&, const Tensor& var, float epsilon, const Tensor& inv_std);
// y = act(gamma * (x - mean) * inv_std + beta + residual); residual may be undefined. y may be x.
void batch_norm_apply(Context&, const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                      const Tensor& beta, const Tensor& residual, Activation, const Tensor& y);

void batch_norm_grad(Context&, const Tensor& dy, const BatchNormSaved&, const BatchNormGrads&);
}  // namespace cpu

}  // namespace dtrain
