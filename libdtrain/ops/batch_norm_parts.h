// What batch norm is to the ops that it is a part of: what they share with it, and what it leaves to them.
#pragma once

#include <functional>

#include "libdtrain/ops/batch_norm.h"

namespace dtrain {

// dx of a batch norm by the statistics of a batch that is left to the convolution before it:
// scale * gated(dz) - (offset + (x - mean) * slope), where dz, the gradient of its result or of what enters its
// activation, is what that convolution gets.
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
