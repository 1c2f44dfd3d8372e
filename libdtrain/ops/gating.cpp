#include "dtrain/ops/gating.h"

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/gating_kernels.h"
#include "libdtrain/ops/gating_math.h"

namespace dtrain {

Var mul(Tape& tape, const Var& a, const Var& b) {
  DT_CHECK(a.shape() == b.shape() && a.value.dtype() == b.value.dtype(), "mul: factors ", a.shape(), " of ",
           a.value.dtype(), " and ", b.shape(), " of ", b.value.dtype(), ", expected equal shapes and types");
  Context& context = tape.context();
  const Tensor y = context.empty(a.shape(), a.value.dtype());
  DT_DISPATCH(context, mul)(a.value, b.value, y, false);
  // Each factor is saved for the gradient of the other.
  return tape.record("mul", y, {&a, &b},
                     [a = a.without_value(), b = b.without_value(), a_value = b.needs_grad() ? a.value : Tensor(),
                      b_value = a.needs_grad() ? b.value : Tensor()](Tape& t, const Tensor& dy) {
                       if (const auto target = t.grad_target(a))
                         DT_DISPATCH(t.context(), mul)(dy, b_value, target->dx, target->add);
                       if (const auto target = t.grad_target(b))
                         DT_DISPATCH(t.context(), mul)(dy, a_value, target->dx, target->add);
                     });
}

Var scale(Tape& tape, const Var& x, float factor) {
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, scale)(x.value, factor, y, false);
  return tape.record("scale", y, {&x}, [x = x.without_value(), factor](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x)) DT_DISPATCH(t.context(), scale)(dy, factor, target->dx, target->add);
  });
}

Var scale_gradient(Tape& tape, const Var& x, float factor) {
  return tape.record("scale_gradient", x.value, {&x}, [x = x.without_value(), factor](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x)) DT_DISPATCH(t.context(), scale)(dy, factor, target->dx, target->add);
  });
}

Var sigmoid(Tape& tape, const Var& x) {
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, sigmoid)(x.value, y);
  return tape.record("sigmoid", y, {&x}, [x](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x))
      DT_DISPATCH(t.context(), sigmoid_grad)(dy, x.value, target->dx, target->add);
  });
}

Var silu(Tape& tape, const Var& x) {
  Context& context = tape.context();
  const Tensor y = context.empty(x.shape(), x.value.dtype());
  DT_DISPATCH(context, silu)(x.value, y);
  return tape.record("silu", y, {&x}, [x](Tape& t, const Tensor& dy) {
    if (const auto target = t.grad_target(x)) DT_DISPATCH(t.context(), silu_grad)(dy, x.value, target->dx, target->add);
  });
}

namespace cpu {
namespace {

constexpr int64_t kExpWeight = 4;  // cost of a vectorised exponential, in loads, adds and stores

}  // namespace

void mul(Context&, const Tensor& a, const Tensor& b, const Tensor& y, bool add) {
  write(y, add, [a = a.data<float>(), b = b.data<float>()](int64_t i) { return a[i] * b[i]; });
}

void scale(Context&, const Tensor& x, float factor, const Tensor& y, bool add) {
  write(y, add, [x = x.data<float>(), factor](int64_t i) { return factor * x[i]; });
}

void sigmoid(Context&, const Tensor& x, const Tensor& y) {
  write(
      y, false, [x = x.data<float>()](int64_t i) { return dtrain::sigmoid(x[i]); }, kExpWeight);
}

void sigmoid_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& dx, bool add) {
  write(
      dx, add, [dy = dy.data<float>(), x = x.data<float>()](int64_t i) { return dtrain::sigmoid_grad(dy[i], x[i]); },
      kExpWeight);
}

void silu(Context&, const Tensor& x, const Tensor& y) {
  write(
      y, false, [x = x.data<float>()](int64_t i) { return dtrain::silu(x[i]); }, kExpWeight);
}

void silu_grad(Context&, const Tensor& dy, const Tensor& x, const Tensor& dx, bool add) {
  write(
      dx, add, [dy = dy.data<float>(), x = x.data<float>()](int64_t i) { return dtrain::silu_grad(dy[i], x[i]); },
      kExpWeight);
}

}  // namespace cpu
}  // namespace dtrain
