#include "libdtrain/ops/bn_relu_max_pool.h"

#include "libdtrain/core/dispatch.h"
#include "libdtrain/ops/batch_norm_parts.h"

namespace dtrain {

template <>
inline constexpr bool takes_bf16<cpu::bn_relu_max_pool> = true;

Var bn_relu_max_pool(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                     const BatchNormOptions& bn, const PoolOptions& pool) {
  // Fused is the case that training a network of its own takes.
  if (!tape.training() || bn.frozen)
    return max_pool(tape, batch_norm(tape, x, gamma, beta, state, bn, Activation::relu), pool);
  check_batch_norm(x, gamma, beta, state);
  Context& context = tape.context();
  const BatchNormInputs in{x.value, gamma.value, beta.value, {}, Activation::relu};
  const BatchNormOutputs out{context.empty(pool_shape(x.shape(), pool), x.value.dtype()),
                             context.empty(gamma.shape()),
                             context.empty(gamma.shape()),
                             {}};
  const Tensor argmax = tape.wants_grad({&x, &gamma, &beta}) ? context.empty(out.y.shape(), DType::u8) : Tensor();
  DT_DISPATCH(context, bn_relu_max_pool)(in, state, bn, pool, out, argmax);
  const BatchNormSaved saved{
      x.value, {}, {}, out.mean, out.inv_std, gamma.value, beta.value, Activation::relu, false, synchronised_by(bn)};
  return tape.record("bn_relu_max_pool", out.y, {&x, &gamma, &beta},
                     [saved, argmax, pool, x = x.without_value(), g = gamma.without_value(), b = beta.without_value()](
                         Tape& t, const Tensor& dy) {
                       const Tensor unpooled = t.context().empty(saved.x.shape(), dy.dtype());
                       DT_DISPATCH(t.context(), max_pool_grad)(dy, argmax, pool, unpooled, false);
                       batch_norm_backward(t, unpooled, x, g, b, {}, saved);
                     });
}

namespace cpu {

void bn_relu_max_pool(Context& context, const BatchNormInputs& in, const BatchNormState& state,
                      const BatchNormOptions& bn, const PoolOptions& pool, const BatchNormOutputs& out,
                      const Tensor& argmax) {
  const Tensor whole = context.empty(in.x.shape(), in.x.dtype());
  batch_norm_train(context, in, state, bn, {whole, out.mean, out.inv_std, {}});
  max_pool(context, whole, pool, out.y, argmax);
}

}  // namespace cpu
}  // namespace dtrain
