// Operands of batch norm's kernels, and its fusions with convolution and max pooling. Internal: users include
// batch_norm.h.
#pragma once

#include <functional>
#include <memory>
#include <tuple>

#include "dtrain/ops/batch_norm.h"

namespace dtrain {

// Communicator for synchronised statistics; null for local statistics, also if there is a single rank.
Communicator* synchronised_by(const BatchNormOptions& options);
// Sum all-reduce of `x`, f32, in place, ordered before all work enqueued later. `what`: name for reports.
void all_reduce_sum(Communicator& ranks, const Tensor& x, const char* what);

// Fused statistics: sums over n,h,w of x - pivot and of its square, f32 [c]. Undefined pivot: 0, as on GPUs.
struct ChannelStatistics {
  Tensor sum{}, square{}, pivot{};

  auto tensors() const { return std::tie(sum, square, pivot); }
};
// A batch norm with relu that the convolution after it applies while it loads x: relu(x * scale + shift), [c] and of
// x's type.
struct OnLoad {
  Tensor scale{}, shift{};

  bool defined() const { return scale.defined(); }
  auto tensors() const { return std::tie(scale, shift); }
};

// Inputs of one call. `residual` may be undefined. `sums`, if defined, replace the reduction of x.
struct BatchNormInputs {
  Tensor x, gamma, beta, residual;
  Activation activation = Activation::none;
  ChannelStatistics sums{};

  auto tensors() const { return std::tie(x, gamma, beta, residual, sums); }
};
// Outputs of one call. mean and inv_std, f32 [c], are the statistics that normalise y. `mask`: relu's mask for the
// gradient, laid out as in relu_mask_bytes; undefined if not needed, and on a CPU, where the gradient reads y. On a GPU
// in training y may be undefined, to compute statistics only; `load`, if defined, then receives scale and shift.
struct BatchNormOutputs {
  Tensor y, mean, inv_std, mask;
  OnLoad load{};

  auto tensors() const { return std::tie(y, mean, inv_std, mask, load); }
};

// Saved by the forward pass for the backward pass. x is undefined if statistics are constant and neither gamma nor beta
// needs a gradient. At most one of y and mask is defined, and only if relu's mask cannot be recomputed from x.
struct BatchNormSaved {
  Tensor x, y, mask, mean, inv_std, gamma, beta;
  Activation activation = Activation::none;
  bool constant_statistics = false;
  Communicator* communicator = nullptr;  // of synchronised statistics; null: local
  // f32 [c], gradients of beta and gamma: defined if the op that computed dy fused these reductions and relu's mask.
  Tensor dbeta{}, dgamma{};

  auto tensors() const { return std::tie(x, y, mask, mean, inv_std, gamma, beta, dbeta, dgamma); }
};
struct DeferredGrad;
// Gradients to compute; undefined: not needed. dx, dgamma and dbeta are stored or added; dresidual, the gradient of the
// activation's input, is stored. Either dx or dresidual may alias dy; dx is then stored.
struct BatchNormGrads {
  Tensor dx, dgamma, dbeta, dresidual;
  bool add_dx = false, add_dgamma = false, add_dbeta = false;
  DeferredGrad* deferred = nullptr;  // on a CPU, in place of dx

  auto tensors() const { return std::tie(dx, dgamma, dbeta, dresidual); }
};

namespace cpu {
// Normalises by the statistics of x and updates the running statistics.
void batch_norm_train(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const BatchNormOutputs&);
// Normalises by the running statistics; out.mean is not written.
void batch_norm_infer(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const BatchNormOutputs&);
void batch_norm_grad(Context&, const Tensor& dy, const BatchNormSaved&, const BatchNormGrads&);
}  // namespace cpu

namespace cuda {
decltype(cpu::batch_norm_train) batch_norm_train;
decltype(cpu::batch_norm_infer) batch_norm_infer;
decltype(cpu::batch_norm_grad) batch_norm_grad;
}  // namespace cuda

// Gradient dx of a batch norm with batch statistics, deferred to the convolution before it: that receives dz, the
// gradient of the result or of the activation's input, and computes scale * mask(dz) - (offset + (x - mean) * slope).
struct DeferredGrad {
  BatchNormSaved saved{};
  bool gated = false;       // the activation's mask is already applied to dz
  Tensor scale{}, terms{};  // f32 [c], and [2 c]: offset and slope

  bool defined() const { return scale.defined(); }
};

// Throws Error if shapes do not match.
void check_batch_norm(const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state);
// Gradient targets of gamma and beta.
BatchNormGrads parameter_targets(Tape& tape, const Var& gamma, const Var& beta);
// Computes the gradients from dy, the gradient of the batch norm's output. If `deferred` is not null, x receives dz in
// place of its gradient.
void batch_norm_backward(Tape& tape, const Tensor& dy, const Var& x, const Var& gamma, const Var& beta,
                         const Var& residual, const BatchNormSaved& saved, DeferredGrad* deferred = nullptr);

// Result of a batch norm for its only consumer, a convolution.
struct Normalized {
  Var y{};
  OnLoad load{};  // if defined, not yet applied to y: the convolution applies it on load
  // Not null if y is relu of a batch norm with local batch statistics and without residual: the convolution's dgrad may
  // fuse the reductions of the batch norm's gradient.
  std::shared_ptr<BatchNormSaved> saved{};
};
// batch_norm with fused statistics `sums`, if defined. If `deferred` is not null and batch statistics are used,
// backward defers the gradient of x to it.
Normalized batch_norm_with_statistics(Tape& tape, const Var& x, const Var& gamma, const Var& beta,
                                      const BatchNormState& state, const BatchNormOptions& options,
                                      Activation activation, const Var* residual, const ChannelStatistics& sums,
                                      const std::shared_ptr<DeferredGrad>& deferred = {});
// relu(bn(x)) for a consumer that applies it on load: on a GPU in training, f16, local batch statistics. y has the
// value of x and the gradient slot of the result. Instead of the result, scale and shift are rounded to f16: the error
// is mean / deviation times that of rounding the result, if the mean exceeds a few standard deviations, else equal.
Normalized batch_norm_on_load(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                              const BatchNormOptions& options, const ChannelStatistics& sums);

namespace cpu {
// Computes mean [c] and inv_std [c] of x, over all ranks if synchronised, and updates the running statistics.
void batch_norm_statistics(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                           const Tensor& mean, const Tensor& inv_std);
// gamma * inv_std, [c].
Tensor batch_norm_scales(Context&, const Tensor& gamma, const Tensor& inv_std);
// Computes rows [begin, end) of a gradient into `to`; called by several threads.
template <class T>
using MakeRows = std::function<void(int64_t begin, int64_t end, T* to)>;
// As batch_norm_grad, with `rows` rows of dy computed on demand, once or twice.
template <class T>
void batch_norm_grad_of(Context&, const MakeRows<T>&, int64_t rows, const BatchNormSaved&, const BatchNormGrads&);
// Computes rows [begin, end) of dx, c channels each, from dz. T is float or Bf16.
template <class T>
void deferred_rows(const Context&, const DeferredGrad&, const Tensor& dz, int64_t begin, int64_t end, T* dx);
}  // namespace cpu

}  // namespace dtrain
