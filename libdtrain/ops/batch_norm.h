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

#include <memory>
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

// The communicator of several ranks that statistics are synchronised over; null where they are this rank's own.
Communicator* synchronised_by(const BatchNormOptions& options);
// Sums `x`, f32, over the ranks, in place; what is queued after it finds the sums.
void all_reduce_sum(Communicator& ranks, const Tensor& x, const char* what);

// Sums over n,h,w of x - pivot and of its square, f32 [c]: the statistics of a batch follow. No pivot: 0, as on GPUs.
struct ChannelSums {
  Tensor sum{}, square{}, pivot{};

  auto tensors() const { return std::tie(sum, square, pivot); }
};
// A batch norm with relu that is left to whoever reads its images: relu(x * scale + shift), [c] and of x's type.
struct OnLoad {
  Tensor scale{}, shift{};

  bool defined() const { return scale.defined(); }
  auto tensors() const { return std::tie(scale, shift); }
};

// The inputs of one call. `residual` and `sums` may be undefined; where sums of x are given, its statistics are not
// computed from x again.
struct BatchNormInputs {
  Tensor x, gamma, beta, residual;
  Activation activation = Activation::none;
  ChannelSums sums{};

  auto tensors() const { return std::tie(x, gamma, beta, residual, sums); }
};
// What it writes. mean and inv_std, [c], are those that y was normalised with. `mask` is undefined where it is not
// wanted; its layout is that of relu_mask_bytes, and the CPU arm, which reads y instead, writes none. On a GPU in
// training y may be undefined, where the statistics alone are wanted, and `load`, where it is defined, is written for
// the statistics of this rank's batch.
struct BatchNormOutputs {
  Tensor y, mean, inv_std, mask;
  OnLoad load{};

  auto tensors() const { return std::tie(y, mean, inv_std, mask, load); }
};

// What the forward pass leaves for the backward pass. x is undefined where the statistics are constant and neither
// gamma nor beta wants a gradient. At most one of y and mask is defined: where relu's gate does not follow from x.
struct BatchNormSaved {
  Tensor x, y, mask, mean, inv_std, gamma, beta;
  Activation activation = Activation::none;
  bool constant_statistics = false;
  Communicator* communicator = nullptr;  // connects the ranks whose statistics these are
  // f32 [c], gradients of beta and gamma: defined where the op that made dy has closed relu's gate in it and added up.
  Tensor dbeta{}, dgamma{};

  auto tensors() const { return std::tie(x, y, mask, mean, inv_std, gamma, beta, dbeta, dgamma); }
};
struct DeferredGrad;  // batch_norm_parts.h
// Each may be undefined where it is not wanted. dx, dgamma and dbeta are stored or added; dresidual, the gradient of
// what enters the activation, is stored. Either dx or dresidual may be dy itself; dx is then stored.
struct BatchNormGrads {
  Tensor dx, dgamma, dbeta, dresidual;
  bool add_dx = false, add_dgamma = false, add_dbeta = false;
  DeferredGrad* deferred = nullptr;  // on a CPU, in place of dx

  auto tensors() const { return std::tie(dx, dgamma, dbeta, dresidual); }
};

namespace cpu {
// With the statistics of x, by which the running ones are updated.
void batch_norm_train(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const BatchNormOutputs&);
// With the running statistics; mean is not written.
void batch_norm_infer(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const BatchNormOutputs&);
void batch_norm_grad(Context&, const Tensor& dy, const BatchNormSaved&, const BatchNormGrads&);
}  // namespace cpu

namespace cuda {
decltype(cpu::batch_norm_train) batch_norm_train;
decltype(cpu::batch_norm_infer) batch_norm_infer;
decltype(cpu::batch_norm_grad) batch_norm_grad;
}  // namespace cuda

}  // namespace dtrain
