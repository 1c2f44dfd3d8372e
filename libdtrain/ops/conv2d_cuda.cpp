// Convolution by cuDNN, but for depthwise ones: each call as a problem with a plan, fused with its bias or its addition
// where that is faster.
#include "libdtrain/ops/conv2d_cuda.h"
#include "dtrain/ops/pointwise.h"
#include "libdtrain/cuda/comparison.h"
#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/depthwise_cuda.h"
#include "libdtrain/ops/pointwise_kernels.h"

namespace dtrain::cuda {
namespace {

// The largest power of two, 16 at most, that divides all addresses: a slice of rows may begin anywhere.
int64_t alignment_of(const ConvOperands& o) {
  uintptr_t bits = 16;
  for (const void* address : {o.image, o.filter, o.output, o.extra, o.sum, o.sum_of_squares, o.scale, o.shift, o.mean,
                              o.inv_std, o.gamma, o.beta, o.dgamma, o.dbeta, o.terms[0], o.terms[1], o.terms[2]})
    bits |= reinterpret_cast<uintptr_t>(address);
  return static_cast<int64_t>(bits & -bits);
}

// Whether an engine that adds to dx as it writes it comes to what a gradient does that is added afterwards, and takes
// no longer. What is added afterwards goes through memory three times more.
bool adds_in_place(Context& context, const ConvProblem& in_place, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  ConvPlans& plans = context.runtime().conv_plans();
  ConvProblem plain = in_place;
  plain.kind = ConvKind::dgrad;
  const Tensor made_dy = random_tensor(context, dy.shape(), dy.dtype(), 1),
               made_w = random_tensor(context, w.shape(), w.dtype(), 2);
  const Tensor sum = random_tensor(context, dx.shape(), dx.dtype(), 3),
               expected = random_tensor(context, dx.shape(), dx.dtype(), 3);
  const Tensor scratch = context.empty(dx.shape(), dx.dtype());
  const ConvOperands added{sum.raw(), made_w.raw(), made_dy.raw()}, apart{scratch.raw(), made_w.raw(), made_dy.raw()};
  const float time = plans.milliseconds(context, in_place, added, "conv2d_dgrad");
  if (time > plans.milliseconds(context, plain, apart, "conv2d_dgrad") + plans.pass_milliseconds(3 * dx.bytes()))
    return false;
  plans.run(context, in_place, added, "conv2d_dgrad");
  plans.run(context, plain, apart, "conv2d_dgrad");
  cuda::accumulate(context, scratch, expected);
  const bool agrees = is_close(context, sum, expected);
  if (!agrees)
    context.notices().push_back(concat(name_of(in_place), ": cuDNN's sum in place is another one, and is not used"));
  return agrees;
}

}  // namespace

ConvProblem problem_of(const Context& context, ConvKind kind, const Tensor& x, const Shape& w, const Tensor& y,
                       const Conv2dOptions& options, const ConvOperands& operands) {
  ConvProblem o{};
  o.kind = kind;
  o.dtype = o.output_dtype = static_cast<int64_t>(x.dtype());
  o.n = x.dim(0), o.h = x.dim(1), o.w = x.dim(2), o.c = x.dim(3);
  o.k = w[0], o.r = w[1], o.s = w[2];
  o.p = y.dim(1), o.q = y.dim(2);
  o.stride_h = options.stride.h, o.stride_w = options.stride.w;
  o.dilation_h = options.dilation.h, o.dilation_w = options.dilation.w;
  o.pad_top = options.padding.top, o.pad_bottom = options.padding.bottom;
  o.pad_left = options.padding.left, o.pad_right = options.padding.right;
  o.groups = options.groups;
  o.alignment = alignment_of(operands);
  o.tf32 = x.dtype() == DType::f32 && context.runtime().options().tf32;
  o.deterministic = context.runtime().options().deterministic;
  return o;
}

void conv2d(Context& context, const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
            const Tensor& y) {
  if (is_depthwise(x.shape(), w.shape(), options)) return depthwise(context, x, w, bias, options, y);
  ConvPlans& plans = context.runtime().conv_plans();
  const ConvOperands plain{x.raw(), w.raw(), y.raw()};
  const ConvProblem problem = problem_of(context, ConvKind::forward, x, w.shape(), y, options, plain);
  if (!bias) return plans.run(context, problem, plain, "conv2d");
  const ConvOperands fused{x.raw(), w.raw(), y.raw(), bias.raw()};
  const ConvProblem with_bias = problem_of(context, ConvKind::forward_bias, x, w.shape(), y, options, fused);
  if (plans.milliseconds(context, with_bias, fused, "conv2d") <=
      plans.milliseconds(context, problem, plain, "conv2d") + plans.pass_milliseconds(2 * y.bytes()))
    return plans.run(context, with_bias, fused, "conv2d");
  plans.run(context, problem, plain, "conv2d");
  add_bias(context, bias, y);
}

void conv2d_dgrad(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options, const Tensor& dx,
                  bool add) {
  if (is_depthwise(dx.shape(), w.shape(), options)) return depthwise_dgrad(context, dy, w, options, dx, add);
  ConvPlans& plans = context.runtime().conv_plans();
  const ConvOperands plain{dx.raw(), w.raw(), dy.raw()};
  ConvProblem problem = problem_of(context, ConvKind::dgrad, dx, w.shape(), dy, options, plain);
  if (!add) return plans.run(context, problem, plain, "conv2d_dgrad");
  const ConvProblem in_place = problem_of(context, ConvKind::dgrad_add, dx, w.shape(), dy, options, plain);
  if (plans.chosen(context, "in_place:" + name_of(in_place),
                   [&] { return adds_in_place(context, in_place, dy, w, dx); }))
    return plans.run(context, in_place, plain, "conv2d_dgrad");
  const Tensor scratch = context.empty(dx.shape(), dx.dtype());
  plans.run(context, problem, {scratch.raw(), w.raw(), dy.raw()}, "conv2d_dgrad");
  cuda::accumulate(context, scratch, dx);
}

void conv2d_wgrad(Context& context, const Tensor& x, const Tensor& dy, const Conv2dOptions& options, const Tensor& dw,
                  bool add) {
  if (is_depthwise(x.shape(), dw.shape(), options)) return depthwise_wgrad(context, x, dy, options, dw, add);
  ConvPlans& plans = context.runtime().conv_plans();
  const Shape w{dw.dim(0), dw.dim(1), dw.dim(2), x.dim(3) / options.groups};
  const bool direct = !add && w == dw.shape();
  // What is not written directly goes to scratch, which is made when it is known of which type.
  const ConvOperands from{x.raw(), nullptr, dy.raw()}, to_f32{x.raw(), direct ? dw.raw() : nullptr, dy.raw()};
  const ConvProblem rounded = problem_of(context, ConvKind::wgrad, x, w, dy, options, from);
  ConvProblem problem = problem_of(context, ConvKind::wgrad, x, w, dy, options, to_f32);
  problem.output_dtype = static_cast<int64_t>(DType::f32);
  const size_t saved = direct ? static_cast<size_t>(dw.count()) * size_of(x.dtype()) + dw.bytes() : 0;
  const bool rounds = x.dtype() != DType::f32 &&
                      plans.milliseconds(context, problem, to_f32, "conv2d_wgrad") >
                          plans.milliseconds(context, rounded, from, "conv2d_wgrad") + plans.pass_milliseconds(saved);
  if (direct && !rounds) return plans.run(context, problem, to_f32, "conv2d_wgrad");
  const Tensor scratch = context.empty(w, rounds ? x.dtype() : DType::f32);
  plans.run(context, rounds ? rounded : problem, {x.raw(), scratch.raw(), dy.raw()}, "conv2d_wgrad");
  store_gradient(context, scratch, dw, add);
}

}  // namespace dtrain::cuda
