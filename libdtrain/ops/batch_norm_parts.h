// Batch norm as a part of fused ops (convolution, max pooling): its kernels' operands, and work that it defers to them.
// Internal: users include batch_norm.h.
#pragma once

#include <functional>
#include <memory>
#include <tuple>

#include "libdtrain/ops/batch_norm.h"

namespace dtrain {

// The communicator of several ranks that statistics are synchronised over; null where they are this rank's own.
Communicator* synchronised_by(const BatchNormOptions& options);
// Sums `x`, f32, over the ranks, in place; what is queued after it finds the sums.
void all_reduce_sum(Communicator& ranks, const Tensor& x, const char* what);

// Sums over n,h,w of x - pivot and of its square, f32 [c]: the statistics of a batch follow. No pivot: 0, as on GPUs.
struct ChannelSums {
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

// The inputs of one call. `residual` and `sums` may be undefined; where sums of x are given, its statistics are not
// computed from x again.
struct BatchNormInputs {
  Tensor x, gamma, beta, residual;
  Activation activation = Activation::none;
  ChannelSums sums{};

  auto tensors() const { return std::tie(x, gamma, beta, residual, sums); }
};
// The outputs of one call. mean and inv_std, [c], are the statistics that y is normalised by. `mask` is undefined where
// it is not needed; its layout is that of relu_mask_bytes, and the CPU arm, which reads y instead, writes none. On a
// GPU in training y may be undefined, where the statistics alone are wanted, and `load`, where it is defined, is
// written for the statistics of this rank's batch.
struct BatchNormOutputs {
  Tensor y, mean, inv_std, mask;
  OnLoad load{};

  auto tensors() const { return std::tie(y, mean, inv_std, mask, load); }
};

// Saved by the forward pass for the backward pass. x is undefined where the statistics are constant and neither
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
struct DeferredGrad;
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

// dx of a batch norm with batch statistics, deferred to the convolution before it, which receives dz, the gradient of
// the result or of the activation's input: scale * gated(dz) - (offset + (x - mean) * slope).
struct DeferredGrad {
  BatchNormSaved saved{};
  bool gated = false;       // dz has passed the activation
  Tensor scale{}, terms{};  // f32 [c], and [2 c]: offset and slope

  bool defined() const { return scale.defined(); }
};

// Throws where shapes do not fit.
void check_batch_norm(const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state);
// Where the gradients of gamma and beta go.
BatchNormGrads parameter_targets(Tape& tape, const Var& gamma, const Var& beta);
// Gives the gradients that follow from dy, the gradient of the batch norm's output. Where `deferred` is not null, dz is
// passed on in place of the gradient of x.
void batch_norm_backward(Tape& tape, const Tensor& dy, const Var& x, const Var& gamma, const Var& beta,
                         const Var& residual, const BatchNormSaved& saved, DeferredGrad* deferred = nullptr);

// The result of a batch norm, for a convolution that is the only one to read it.
struct Normalized {
  Var y{};
  OnLoad load{};  // where defined, y is still without this, and the convolution applies it as it reads
  // Where not null, y is relu of a batch norm of this rank's batch without a residual: the convolution may begin that
  // batch norm's gradient while it makes dy.
  std::shared_ptr<BatchNormSaved> saved{};
};
// batch_norm, from the sums of x where they are defined. Where `deferred` is not null and the statistics are those of
// the batch, backward leaves there what the gradient of x follows from.
Normalized batch_norm_with_sums(Tape& tape, const Var& x, const Var& gamma, const Var& beta,
                                const BatchNormState& state, const BatchNormOptions& options, Activation activation,
                                const Var* residual, const ChannelSums& sums,
                                const std::shared_ptr<DeferredGrad>& deferred = {});
// relu(bn(x)) in training on a GPU with the statistics of this rank's batch, left to the reader: y has the value of x
// and the slot of the result. x is f16. The result is not rounded to f16, as batch_norm's would be, but scale and shift
// are: an error of the same size where the mean is no larger than a few deviations, else mean / deviation times as
// large.
Normalized batch_norm_on_load(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                              const BatchNormOptions& options, const ChannelSums& sums);

namespace cpu {
// mean[c] and inv_std[c] of x, or of the images of all ranks; the running statistics are updated.
void batch_norm_statistics(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                           const Tensor& mean, const Tensor& inv_std);
// gamma * inv_std, [c].
Tensor batch_norm_scales(Context&, const Tensor& gamma, const Tensor& inv_std);
// Makes rows [begin, end) of a gradient at `to`, for the thread that calls.
template <class T>
using MakeRows = std::function<void(int64_t begin, int64_t end, T* to)>;
// As batch_norm_grad, from `rows` rows of dy, which are made when they are read, once or twice.
template <class T>
void batch_norm_grad_of(Context&, const MakeRows<T>&, int64_t rows, const BatchNormSaved&, const BatchNormGrads&);
// Rows [begin, end) of dx, of c channels, from dz, both of T, float or Bf16.
template <class T>
void deferred_rows(const Context&, const DeferredGrad&, const Tensor& dz, int64_t begin, int64_t end, T* dx);
}  // namespace cpu

}  // namespace dtrain
