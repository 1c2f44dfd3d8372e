// Batch normalisation over the channels of NHWC images (Ioffe and Szegedy 2015).
//   train:  m = mean(x), v = mean((x - m)^2) over n,h,w;  y = gamma * (x - m) / sqrt(v + eps) + beta
//           running = momentum * running + (1 - momentum) * batch statistic (the variance unbiased, as torch's, where
//           asked)
//   eval:   the same with the running statistics
//   frozen: as eval, also in training; gradients flow to x, gamma and beta but not into the statistics
//   synchronised: as train, with m and v over n,h,w of all ranks' images. N ranks compute what one rank does with all
//           their images. Where each rank's loss is the mean over its own images, dx, dgamma and dbeta are then the
//           gradients of the sum of the ranks' losses: dx whole, dgamma and dbeta the part of this rank's images. So
//           the sum over the ranks, divided by N, is the gradient of their mean, as it is of any other parameter.
#pragma once

#include <tuple>
#include <utility>

#include "libdtrain/autograd/tape.h"
#include "libdtrain/core/activation.h"

namespace dtrain {

class Communicator;

struct BatchNormOptions {
  float epsilon = 1e-5f;
  float momentum = 0.9f;  // share of the old running statistic kept: 1 - torch's momentum
  bool frozen = false;
  bool unbiased_running_variance = true;  // n / (n - 1) on the variance that goes into the running one
  // Synchronises the statistics of a batch over its ranks; null, or of one rank: they are this rank's own. Made for the
  // compute queue, with f32 on the wire; all ranks call the same ops in the same order.
  Communicator* communicator = nullptr;
};

struct BatchNormState {
  Tensor running_mean{}, running_var{};  // [c], updated in place by training

  auto tensors() const { return std::tie(running_mean, running_var); }
};

// A batch norm notes this for an OpObserver. The activation follows the normalisation.
using BatchNormNote = std::pair<BatchNormOptions, Activation>;

// y = act(bn(x) + residual). x [n,h,w,c]; gamma, beta [c]; `residual` null or of x's shape. Throws where shapes or
// types do not fit.
Var batch_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
               const BatchNormOptions& options = {}, Activation activation = Activation::none,
               const Var* residual = nullptr);

}  // namespace dtrain
