// Batch normalisation over the channels of NHWC images (Ioffe and Szegedy 2015).
//   train:  m = mean(x), v = mean((x - m)^2) over n,h,w;  y = gamma * (x - m) / sqrt(v + eps) + beta
//           running = momentum * running + (1 - momentum) * batch statistic (variance: see unbiased_running_variance)
//   eval:   the same with the running statistics
//   frozen: as eval, also in training; gradients flow to x, gamma and beta but not into the statistics
//   synchronised: as train, with m and v over n,h,w of the images of all ranks, as if one rank had all images.
//           Gradients are of the sum of the ranks' losses. dx is complete; dgamma and dbeta are this rank's summands.
//           Their mean over the ranks, as of all parameters' gradients, is the gradient of the mean loss.
#pragma once

#include <tuple>
#include <utility>

#include "dtrain/autograd/tape.h"
#include "dtrain/core/activation.h"

namespace dtrain {

class Communicator;

struct BatchNormOptions {
  float epsilon = 1e-5f;
  float momentum = 0.9f;  // share of the old running statistic kept: 1 - torch's momentum
  bool frozen = false;
  bool unbiased_running_variance = true;  // n / (n - 1) on the variance that goes into the running one
  // Synchronises batch statistics over its ranks; null or a single rank: local statistics. It must use Stream::compute
  // and wire type f32. All ranks call the same ops in the same order.
  Communicator* communicator = nullptr;
};

struct BatchNormState {
  Tensor running_mean{}, running_var{};  // [c], updated in place by training

  auto tensors() const { return std::tie(running_mean, running_var); }
};

// Note of a recorded batch norm for an OpObserver: its options, and the activation after it.
using BatchNormNote = std::pair<BatchNormOptions, Activation>;

// y = act(bn(x) + residual). x [n,h,w,c]; gamma, beta [c]; `residual` null or of x's shape. Throws Error if
// shapes or types do not match.
Var batch_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
               const BatchNormOptions& options = {}, Activation activation = Activation::none,
               const Var* residual = nullptr);

}  // namespace dtrain
