// Checks of batch_norm, what it saves, and its gradient closure.

#include "dtrain/core/dispatch.h"
#include "dtrain/distributed/communicator.h"
#include "dtrain/ops/relu6.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/batch_norm_parts.h"
#include "libdtrain/ops/batch_norm_tiling.h"

namespace dtrain {

template <>
inline constexpr bool takes_bf16<cpu::batch_norm_train> = true;
template <>
inline constexpr bool takes_bf16<cpu::batch_norm_infer> = true;
template <>
inline constexpr bool takes_bf16<cpu::batch_norm_grad> = true;

void check_batch_norm(const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state) {
  DT_CHECK(x.shape().rank() == 4 && x.value.count() > 0, "batch_norm: images ", x.shape(),
           ", expected [n, h, w, c] with elements");
  const Shape channels{x.shape()[3]};
  DT_CHECK(gamma.shape() == channels && beta.shape() == channels, "batch_norm: gamma ", gamma.shape(), " and beta ",
           beta.shape(), ", expected ", channels);
  DT_CHECK(state.running_mean.shape() == channels && state.running_var.shape() == channels,
           "batch_norm: running statistics ", state.running_mean.shape(), " and ", state.running_var.shape(),
           ", expected ", channels);
}

Communicator* synchronised_by(const BatchNormOptions& options) {
  return options.communicator && options.communicator->size() > 1 ? options.communicator : nullptr;
}

void all_reduce_sum(Communicator& ranks, const Tensor& x, const char* what) {
  ranks.all_reduce({&x, 1}, what);
  ranks.join();
}

BatchNormGrads parameter_targets(Tape& tape, const Var& gamma, const Var& beta) {
  BatchNormGrads grads;
  if (auto target = tape.grad_target(gamma)) {
    grads.dgamma = target->dx;
    grads.add_dgamma = target->add;
  }
  if (auto target = tape.grad_target(beta)) {
    grads.dbeta = target->dx;
    grads.add_dbeta = target->add;
  }
  return grads;
}

// Where nobody else holds dy its memory becomes a result: one pass less over memory, one tensor less alive.
void batch_norm_backward(Tape& tape, const Tensor& dy, const Var& x, const Var& gamma, const Var& beta,
                         const Var& residual, const BatchNormSaved& saved, DeferredGrad* deferred) {
  Context& context = tape.context();
  BatchNormGrads grads = parameter_targets(tape, gamma, beta);
  const bool gated = saved.activation != Activation::none;
  if (residual.needs_grad() && gated) grads.dresidual = dy.unique() ? dy : context.empty(dy.shape(), dy.dtype());
  const bool in_place = !deferred && x.needs_grad() && !residual.needs_grad() && dy.unique();
  grads.deferred = deferred;
  if (in_place) grads.dx = dy;
  if (const auto target = in_place || deferred ? std::nullopt : tape.grad_target(x)) {
    grads.dx = target->dx;
    grads.add_dx = target->add;
  }
  DT_DISPATCH(context, batch_norm_grad)(dy, saved, grads);
  if (in_place) tape.pass_grad(x, dy);
  if (deferred) tape.pass_grad(x, grads.dresidual ? grads.dresidual : dy);
  tape.pass_grad(residual, gated ? grads.dresidual : dy);
}

namespace {

Var record_batch_norm(Tape& tape, const Tensor& y, const Var& x, const Var& gamma, const Var& beta, const Var& residual,
                      const std::shared_ptr<BatchNormSaved>& saved,
                      const std::shared_ptr<DeferredGrad>& deferred = {}) {
  return tape.record("batch_norm", y, {&x, &gamma, &beta, &residual},
                     [saved, deferred, x = x.without_value(), g = gamma.without_value(), b = beta.without_value(),
                      r = residual.without_value()](Tape& t, const Tensor& dy) {
                       batch_norm_backward(t, dy, x, g, b, r, *saved, deferred.get());
                     });
}

}  // namespace

Var batch_norm(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
               const BatchNormOptions& options, Activation activation, const Var* residual) {
  return batch_norm_with_statistics(tape, x, gamma, beta, state, options, activation, residual, {}).y;
}

Normalized batch_norm_with_statistics(Tape& tape, const Var& x, const Var& gamma, const Var& beta,
                                      const BatchNormState& state, const BatchNormOptions& options,
                                      Activation activation, const Var* residual, const ChannelStatistics& sums,
                                      const std::shared_ptr<DeferredGrad>& deferred) {
  check_batch_norm(x, gamma, beta, state);
  DT_CHECK(!residual || residual->shape() == x.shape(), "batch_norm: residual ", residual->shape(), ", expected ",
           x.shape());
  DT_CHECK(!residual || residual->value.dtype() == x.value.dtype(), "batch_norm: a residual of ",
           residual->value.dtype(), " for images of ", x.value.dtype());
  Context& context = tape.context();
  if (activation == Activation::relu6 && !context.is_cpu())  // a GPU's kernels know none but relu
    return {relu6(
        tape, batch_norm_with_statistics(tape, x, gamma, beta, state, options, Activation::none, residual, sums).y)};
  const bool constant = !tape.training() || options.frozen;
  const Var none, &r = residual ? *residual : none;
  const BatchNormInputs in{x.value, gamma.value, beta.value, r.value, activation, sums};
  BatchNormOutputs out{context.empty(x.shape(), x.value.dtype()),
                       constant ? state.running_mean : context.empty(gamma.shape()),
                       context.empty(gamma.shape()),
                       {}};

  const bool needs_x = !constant || gamma.needs_grad() || beta.needs_grad();
  const bool needs_gate = activation != Activation::none && (residual || !needs_x);
  if (needs_gate && !context.is_cpu() && tape.wants_grad({&x, &gamma, &beta, &r}))
    out.mask = context.empty(
        {relu_mask_bytes(x.shape().count() / x.shape()[3], x.shape()[3], size_of(x.value.dtype()))}, DType::u8);
  if (constant)
    DT_DISPATCH(context, batch_norm_infer)(in, state, options, out);
  else
    DT_DISPATCH(context, batch_norm_train)(in, state, options, out);

  Communicator* const ranks = constant ? nullptr : synchronised_by(options);
  const auto saved = std::make_shared<BatchNormSaved>(
      BatchNormSaved{needs_x ? x.value : Tensor(), needs_gate && context.is_cpu() ? out.y : Tensor(), out.mask,
                     out.mean, out.inv_std, gamma.value, beta.value, activation, constant, ranks});
  tape.op_observer().note(BatchNormNote{options, activation});
  const bool may_begin = activation == Activation::relu && !residual && !constant && !ranks;
  // With constant statistics dx may be zero at most pixels, which convolutions make use of.
  return {record_batch_norm(tape, out.y, x, gamma, beta, r, saved, constant ? nullptr : deferred),
          {},
          may_begin ? saved : nullptr};
}

Normalized batch_norm_on_load(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                              const BatchNormOptions& options, const ChannelStatistics& sums) {
  check_batch_norm(x, gamma, beta, state);
  Context& context = tape.context();
  const auto channels = [&](DType dtype) { return context.empty(gamma.shape(), dtype); };
  const OnLoad load{channels(x.value.dtype()), channels(x.value.dtype())};
  const BatchNormOutputs out{{}, channels(DType::f32), channels(DType::f32), {}, load};
  const BatchNormInputs in{x.value, gamma.value, beta.value, {}, Activation::relu, sums};
  DT_DISPATCH(context, batch_norm_train)(in, state, options, out);
  const auto saved = std::make_shared<BatchNormSaved>(BatchNormSaved{
      x.value, {}, {}, out.mean, out.inv_std, gamma.value, beta.value, Activation::relu, false, nullptr});
  return {record_batch_norm(tape, x.value, x, gamma, beta, {}, saved), load, saved};
}

}  // namespace dtrain
