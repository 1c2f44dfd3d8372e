#include "dtrain/ops/matmul.h"

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/conv2d.h"
#include "dtrain/ops/inferred_conv.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/matmul.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/matmul_kernels.h"

namespace dtrain {

Var linear(Tape& tape, const Var& x, const Var& w, const Var* bias) {
  DT_CHECK(x.shape().rank() == 2 && w.shape().rank() == 2 && x.value.dim(1) == w.value.dim(1),
           "linear: expected x [n, in] and w [out, in], found ", x.shape(), " and ", w.shape());
  const int64_t out = w.value.dim(0);
  DT_CHECK(!bias || (bias->shape() == Shape{out} && bias->value.dtype() == DType::f32), "linear: a bias of shape ",
           bias->shape(), " of ", bias->value.dtype(), " for ", out, " outputs, expected f32");
  if (x.value.count() > 0 && is_inferred(tape, x)) {
    const Tensor y = inferred_linear(tape, x, w, bias ? bias->value : Tensor());
    tape.count_flops(2 * static_cast<double>(y.count() * w.value.dim(1)));
    return tape.record("linear", y, {&x, &w}, {});
  }
  DT_CHECK(x.value.dtype() == w.value.dtype(), "linear: x of ", x.value.dtype(), " and w of ", w.value.dtype(),
           ": both must be of one type");
  Context& context = tape.context();
  const Tensor y = context.empty({x.value.dim(0), out}, x.value.dtype());
  DT_DISPATCH(context, linear)(x.value, w.value, bias ? bias->value : Tensor(), y);
  const Var b = bias ? bias->without_value() : Var{};
  // A gradient is made from the other's value.
  const Var kept_x{w.needs_grad() ? x.value : Tensor(), x.slot}, kept_w{x.needs_grad() ? w.value : Tensor(), w.slot};
  tape.count_flops(2 * static_cast<double>(y.count() * w.value.dim(1)));
  return tape.record("linear", y, {&x, &w, &b}, [x = kept_x, w = kept_w, b](Tape& t, const Tensor& dy) {
    Context& c = t.context();
    if (const auto target = t.grad_target(b)) DT_DISPATCH(c, bias_grad)(dy, target->dx, target->add);
    if (const auto target = t.grad_target(w)) DT_DISPATCH(c, linear_wgrad)(x.value, dy, target->dx, target->add);
    if (const auto target = t.grad_target(x)) DT_DISPATCH(c, linear_dgrad)(dy, w.value, target->dx, target->add);
  });
}

namespace cpu {

void linear(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  if (!matmul_supports(context, x.dtype(), x.dim(1))) return call_in_f32(context, linear, x, w, bias, y);
  if (y.count() == 0) return;
  with_elements(x.dtype(), [&]<class T>(T) {
    matmul_nt(context, {x.dim(0), w.dim(0), x.dim(1)}, x.data<T>(), w.data<T>(), bias ? bias.data<float>() : nullptr,
              y.data<T>());
  });
}

void linear_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add) {
  if (!matmul_supports(context, dy.dtype(), dy.dim(1))) return call_in_f32(context, linear_dgrad, dy, w, dx, add);
  if (dx.count() == 0) return;
  with_elements(dy.dtype(), [&]<class T>(T) {
    matmul_nn(context, {dy.dim(0), w.dim(1), dy.dim(1)}, dy.data<T>(), w.data<T>(), dx.data<T>(), add);
  });
}

void linear_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add) {
  if (dw.count() == 0) return;
  if (!matmul_tn_supports(context, {dy.dim(1), x.dim(1), x.dim(0)}, dy.dtype()))
    return call_in_f32(context, linear_wgrad, x, dy, dw, add);
  with_elements(dy.dtype(), [&]<class T>(T) {
    matmul_tn(context, {dy.dim(1), x.dim(1), x.dim(0)}, dy.data<T>(), x.data<T>(), dw.data<float>(), add);
  });
}

}  // namespace cpu
}  // namespace dtrain
