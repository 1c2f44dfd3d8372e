#include "libdtrain/ops/matmul.h"

#include <algorithm>

#include "libdtrain/core/dispatch.h"
#include "libdtrain/cpu/direct_conv.h"
#include "libdtrain/cpu/onednn.h"
#include "libdtrain/cpu/onednn_run.h"
#include "libdtrain/ops/conv2d.h"
#include "libdtrain/ops/inferred_conv.h"

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
namespace {

// c = op(a) op(b), or c += it; 'T' transposes.
void gemm(Context& context, char op_a, char op_b, const Tensor& a, const Tensor& b, int64_t k, const Tensor& c,
          bool add) {
  const int64_t m = c.dim(0), n = c.dim(1);
  if (m * n == 0) return;
  multiply(context, m, n, k, {op_a, a.data<float>(), a.dim(1)}, {op_b, b.data<float>(), b.dim(1)}, add, c.data<float>(),
           n);
}

// The layer as a convolution of images of one pixel, which oneDNN has in bf16; its products of matrices are f32.
ConvShape as_convolution(const Tensor& x, const Tensor& w) {
  ConvShape shape{};
  shape.n = x.dim(0), shape.c = x.dim(1), shape.k = w.dim(0);
  for (int64_t* one : {&shape.h, &shape.w, &shape.r, &shape.s, &shape.p, &shape.q, &shape.stride_h, &shape.stride_w,
                       &shape.dilation_h, &shape.dilation_w, &shape.groups})
    *one = 1;
  return shape;
}

}  // namespace

void linear(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  if (x.dtype() == DType::bf16) {
    if (!has_bf16(context) || y.count() == 0) return call_in_f32(context, linear, x, w, bias, y);
    return direct_conv(context, as_convolution(x, w), DType::bf16, x.raw(), w.raw(),
                       bias ? bias.data<float>() : nullptr, y.raw());
  }
  if (bias)
    for (int64_t row = 0; row < y.dim(0); ++row)
      std::copy_n(bias.data<float>(), bias.count(), y.data<float>() + row * bias.count());
  gemm(context, 'N', 'T', x, w, x.dim(1), y, bias.defined());
}

void linear_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx, bool add) {
  if (dy.dtype() == DType::bf16) {
    if (!has_bf16(context) || dx.count() == 0) return call_in_f32(context, linear_dgrad, dy, w, dx, add);
    return direct_conv_dgrad(context, as_convolution(dx, w), DType::bf16, dy.raw(), w.raw(), dx.raw(), add);
  }
  gemm(context, 'N', 'N', dy, w, dy.dim(1), dx, add);
}

void linear_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw, bool add) {
  if (dy.dtype() == DType::bf16) {
    if (!has_bf16(context) || dy.count() == 0) return call_in_f32(context, linear_wgrad, x, dy, dw, add);
    return direct_conv_wgrad(context, as_convolution(x, dw), DType::bf16, x.raw(), dy.raw(), dw.data<float>(), add);
  }
  gemm(context, 'T', 'N', dy, x, x.dim(0), dw, add);
}

}  // namespace cpu
}  // namespace dtrain
