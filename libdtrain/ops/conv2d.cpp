#include "dtrain/ops/conv2d.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "dtrain/ops/inferred_conv.h"
#include "libdtrain/cpu/conv/algorithms.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {
namespace {

// Cells of one output extent; throws with the reason where there is none.
int64_t output_extent(const char* axis, int64_t in, int64_t kernel, int stride, int dilation, int before, int after) {
  DT_CHECK(stride >= 1 && dilation >= 1, "conv2d: ", axis, " stride ", stride, " and dilation ", dilation,
           ": both must be at least 1");
  DT_CHECK(before >= 0 && after >= 0, "conv2d: ", axis, " padding ", before, " and ", after, ": must not be negative");
  const int64_t reach = (kernel - 1) * dilation + 1, padded = in + before + after;
  DT_CHECK(kernel >= 1 && padded >= reach, "conv2d: a kernel of ", axis, " ", kernel, " (", reach,
           " with its dilation) does not fit an image of ", in, " padded to ", padded);
  return (padded - reach) / stride + 1;
}

}  // namespace

Padding Padding::same(int64_t h, int64_t w, Size2 kernel, Size2 stride) {
  auto total = [](int64_t in, int k, int step) {
    return static_cast<int>(std::max<int64_t>(((in + step - 1) / step - 1) * step + k - in, 0));
  };
  const int rows = total(h, kernel.h, stride.h), columns = total(w, kernel.w, stride.w);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2};
}

Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  DT_CHECK(x.rank() == 4, "conv2d: images ", x, ", expected [n, h, w, c]");
  DT_CHECK(w.rank() == 4, "conv2d: filters ", w, ", expected [k, r, s, c / groups]");
  DT_CHECK(x.count() > 0 && w.count() > 0, "conv2d: images ", x, " or filters ", w, " without elements");
  const int64_t groups = options.groups;
  DT_CHECK(groups >= 1 && w[0] % groups == 0, "conv2d: ", w[0], " filters do not divide into ", groups, " groups");
  DT_CHECK(w[3] * groups == x[3], "conv2d: filters ", w, " in ", groups, " groups take ", w[3] * groups,
           " channels, the images ", x, " have ", x[3]);
  const Padding& pad = options.padding;
  return {x[0], output_extent("height", x[1], w[1], options.stride.h, options.dilation.h, pad.top, pad.bottom),
          output_extent("width", x[2], w[2], options.stride.w, options.dilation.w, pad.left, pad.right), w[0]};
}

Shape conv2d_output_shape(const Var& x, const Var& w, const Conv2dOptions& options) {
  DT_CHECK(w.value.dtype() == x.value.dtype(), "conv2d: images of ", x.value.dtype(), " and filters of ",
           w.value.dtype(), ": both must be of one type");
  return conv2d_shape(x.shape(), w.shape(), options);
}
Tensor conv2d_output(Context& context, const Var& x, const Var& w, const Conv2dOptions& options) {
  return context.empty(conv2d_output_shape(x, w, options), x.value.dtype());
}

Var conv2d(Tape& tape, const Var& x, const Var& w, const Var* bias, const Conv2dOptions& options) {
  Context& context = tape.context();
  conv2d_shape(x.shape(), w.shape(), options);  // throws where there is none
  DT_CHECK(!bias || (bias->shape() == Shape{w.shape()[0]} && bias->value.dtype() == DType::f32), "conv2d: bias ",
           bias->shape(), " of ", bias->value.dtype(), ", expected [", w.shape()[0], "] of f32");
  if (is_inferred(tape, x, options)) return inferred_conv(tape, x, w, options, {.bias = bias ? bias->value : Tensor()});
  const Tensor y = conv2d_output(context, x, w, options);
  DT_DISPATCH(context, conv2d)(x.value, w.value, bias ? bias->value : Tensor(), options, y);
  const Var b = bias ? bias->without_value() : Var{};
  // The weight gradient alone needs the images, and the data gradient alone the filters.
  const Var kept_x{w.needs_grad() ? x.value : Tensor(), x.slot}, kept_w{x.needs_grad() ? w.value : Tensor(), w.slot};
  tape.op_observer().note(options);
  tape.count_flops(conv2d_flops(y.shape(), w.shape()));
  return tape.record("conv2d", y, {&x, &w, &b},
                     [x = kept_x, w = kept_w, b, options](Tape& t, const Tensor& dy) mutable {
                       Context& c = t.context();
                       if (const auto target = t.grad_target(b)) DT_DISPATCH(c, bias_grad)(dy, target->dx, target->add);
                       if (const auto target = t.grad_target(w))
                         DT_DISPATCH(c, conv2d_wgrad)(x.value, dy, options, target->dx, target->add);
                       x.value = {};  // where nobody else holds it, dx takes its place
                       if (const auto target = t.grad_target(x))
                         DT_DISPATCH(c, conv2d_dgrad)(dy, w.value, options, target->dx, target->add);
                     });
}

namespace cpu {

ConvShape shape_of(const Tensor& x, const Tensor& w, const Tensor& y, const Conv2dOptions& o) {
  return shape_of(x.shape(), w.shape(), y.shape(), o);
}
ConvShape shape_of(const Shape& x, const Shape& w, const Shape& y, const Conv2dOptions& o) {
  ConvShape shape{};
  shape.n = x[0], shape.h = x[1], shape.w = x[2], shape.c = x[3];
  shape.k = w[0], shape.r = w[1], shape.s = w[2];
  shape.p = y[1], shape.q = y[2];
  shape.stride_h = o.stride.h, shape.stride_w = o.stride.w;
  shape.dilation_h = o.dilation.h, shape.dilation_w = o.dilation.w;
  shape.pad_top = o.padding.top, shape.pad_bottom = o.padding.bottom;
  shape.pad_left = o.padding.left, shape.pad_right = o.padding.right;
  shape.groups = o.groups;
  return shape;
}

void conv2d(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
            const Tensor& y) {
  with_elements(x.dtype(), [&]<class T>(T) {
    run_conv<T>(context, ConvPass::forward, shape_of(x, w, y, options),
                {.x = x.data<T>(), .w = w.data<T>(), .bias = bias ? bias.data<float>() : nullptr, .y = y.data<T>()});
  });
}

void conv2d_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options, const Tensor& dx,
                  bool add) {
  with_elements(dy.dtype(), [&]<class T>(T) {
    run_conv<T>(context, ConvPass::dgrad, shape_of(dx, w, dy, options),
                {.w = w.data<T>(), .dy = dy.data<T>(), .dx = dx.data<T>(), .add = add});
  });
}

void conv2d_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Conv2dOptions& options, const Tensor& dw,
                  bool add) {
  with_elements(dy.dtype(), [&]<class T>(T) {
    run_conv<T>(context, ConvPass::wgrad, shape_of(x, dw, dy, options),
                {.x = x.data<T>(), .dy = dy.data<T>(), .dw = dw.data<float>(), .add = add});
  });
}

void bias_grad(Context& context, const Tensor& dy, const Tensor& db, bool add) {
  const int64_t k = db.count(), rows = dy.count() / k;
  const float* from = dy.data<float>();
  const Scratch<double> sums(context, context.threads() * k);
  parallel_parts(context, rows, [&](int part, int64_t begin, int64_t end) {
    double* sum = sums.data() + part * k;
    std::fill_n(sum, k, 0.0);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < k; ++i) sum[i] += from[row * k + i];
  });
  float* to = db.data<float>();
  for (int64_t i = 0; i < k; ++i) {
    double total = 0;
    for (int part = 0; part < context.threads(); ++part) total += sums.data()[part * k + i];
    to[i] = (add ? to[i] : 0.0f) + static_cast<float>(total);
  }
}

void add_bias(Context&, const Tensor& bias, const Tensor& y) {
  const int64_t k = bias.count();
  const float* const b = bias.data<float>();
  float* const to = y.data<float>();
  parallel_ranges(
      y.count() / k,
      [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < k; ++i) to[row * k + i] += b[i];
      },
      k);
}

}  // namespace cpu
}  // namespace dtrain
