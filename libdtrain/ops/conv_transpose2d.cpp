#include "dtrain/ops/conv_transpose2d.h"

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/pointwise.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {
namespace {

Shape output_shape(const Shape& x, const Shape& w, const Conv2dOptions& o) {
  DT_CHECK(x.rank() == 4 && w.rank() == 4 && x.count() > 0 && w.count() > 0 && w[0] == x[3],
           "conv_transpose2d: images ", x, " and filters ", w,
           ", expected [n, h, w, k] and [k, r, s, c] with elements");
  DT_CHECK(o.dilation.h == 1 && o.dilation.w == 1 && o.groups == 1, "conv_transpose2d: dilation ", o.dilation.h, " x ",
           o.dilation.w, " and ", o.groups, " groups, expected 1");
  const Padding& pad = o.padding;
  const int64_t rows = (x[1] - 1) * o.stride.h - pad.top - pad.bottom + w[1];
  const int64_t columns = (x[2] - 1) * o.stride.w - pad.left - pad.right + w[2];
  DT_CHECK(rows > 0 && columns > 0, "conv_transpose2d: images ", x, " by filters ", w, " would be ", rows, " x ",
           columns);
  const Shape y{x[0], rows, columns, w[3]};
  // The forward convolution must map the output back to x; it checks strides and padding.
  DT_CHECK(conv2d_shape(y, w, o) == x, "conv_transpose2d: a convolution of ", y, " by ", w, " is ",
           conv2d_shape(y, w, o), ", expected ", x);
  return y;
}

}  // namespace

// Gradients are passes of the forward convolution with x and dy exchanged.
Var conv_transpose2d(Tape& tape, const Var& x, const Var& w, const Var* bias, const Conv2dOptions& options) {
  DT_CHECK(w.value.dtype() == x.value.dtype(), "conv_transpose2d: images of ", x.value.dtype(), " and filters of ",
           w.value.dtype(), ": both must be of one type");
  Context& context = tape.context();
  const Tensor y = context.empty(output_shape(x.shape(), w.shape(), options), x.value.dtype());
  DT_CHECK(!bias || (bias->shape() == Shape{y.dim(3)} && bias->value.dtype() == DType::f32), "conv_transpose2d: bias ",
           bias->shape(), " of ", bias->value.dtype(), ", expected [", y.dim(3), "] of f32");
  DT_DISPATCH(context, conv2d_dgrad)(x.value, w.value, options, y, false);
  if (bias) DT_DISPATCH(context, add_bias)(bias->value, y);
  const Var b = bias ? bias->without_value() : Var{};
  const Var kept_x{w.needs_grad() ? x.value : Tensor(), x.slot}, kept_w{x.needs_grad() ? w.value : Tensor(), w.slot};
  tape.count_flops(conv2d_flops(x.shape(), w.shape()));
  return tape.record("conv_transpose2d", y, {&x, &w, &b},
                     [x = kept_x, w = kept_w, b, options](Tape& t, const Tensor& dy) mutable {
                       Context& c = t.context();
                       if (const auto target = t.grad_target(b)) DT_DISPATCH(c, bias_grad)(dy, target->dx, target->add);
                       if (const auto target = t.grad_target(w))
                         DT_DISPATCH(c, conv2d_wgrad)(dy, x.value, options, target->dx, target->add);
                       x.value = {};
                       const auto target = t.grad_target(x);
                       if (!target) return;
                       // Convolutions overwrite: accumulation goes through a temporary.
                       const Tensor dx = target->add ? c.empty(target->dx.shape(), target->dx.dtype()) : target->dx;
                       DT_DISPATCH(c, conv2d)(dy, w.value, Tensor(), options, dx);
                       if (target->add) accumulate(c, dx, target->dx);
                     });
}

}  // namespace dtrain
