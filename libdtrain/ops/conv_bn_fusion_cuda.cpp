// The fused convolutions of conv_bn_act by cuDNN.
#include "libdtrain/ops/conv_bn_fusion_cuda.h"

#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/ops/conv2d_cuda.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/depthwise_cuda.h"

namespace dtrain::cuda {

bool conv2d_with_statistics(Context& context, const Tensor& x, const Tensor& w, const Conv2dOptions& options,
                            const Tensor& y, const ChannelStatistics& sums) {
  ConvPlans& plans = context.runtime().conv_plans();
  const ConvOperands operands{x.raw(), w.raw(), y.raw(), nullptr, sums.sum.raw(), sums.square.raw()};
  const ConvProblem problem = problem_of(context, ConvKind::forward_statistics, x, w.shape(), y, options, operands);
  if (plans.milliseconds(context, problem, operands, "conv2d_with_statistics") == ConvPlans::kUnsupported) return false;
  plans.run(context, problem, operands, "conv2d_with_statistics");
  return true;
}

float statistics_cost(Context& context, const Tensor& x, const Tensor& w, const Conv2dOptions& options, const Tensor& y,
                      const ChannelStatistics& sums) {
  if (is_depthwise(x.shape(), w.shape(), options)) return ConvPlans::kUnsupported;
  ConvPlans& plans = context.runtime().conv_plans();
  const ConvOperands plain{x.raw(), w.raw(), y.raw()};
  const ConvOperands fused{x.raw(), w.raw(), y.raw(), nullptr, sums.sum.raw(), sums.square.raw()};
  return plans.milliseconds(context, problem_of(context, ConvKind::forward_statistics, x, w.shape(), y, options, fused),
                            fused, "conv2d_with_statistics") -
         plans.milliseconds(context, problem_of(context, ConvKind::forward, x, w.shape(), y, options, plain), plain,
                            "conv2d");
}

void conv2d_on_load(Context& context, const Tensor& x, const OnLoad& load, const Tensor& w,
                    const Conv2dOptions& options, const Tensor& y, const ChannelStatistics& sums) {
  ConvOperands operands{x.raw(), w.raw(), y.raw(), nullptr, sums.sum.raw(), sums.square.raw()};
  operands.scale = load.scale.raw(), operands.shift = load.shift.raw();
  context.runtime().conv_plans().run(
      context, problem_of(context, ConvKind::normalized_forward, x, w.shape(), y, options, operands), operands,
      "conv2d_on_load");
}

void conv2d_wgrad_on_load(Context& context, const Tensor& x, const OnLoad& load, const Tensor& dy,
                          const Conv2dOptions& options, const Tensor& dw, bool add) {
  if (!load.defined()) return conv2d_wgrad(context, x, dy, options, dw, add);
  const Tensor scratch = context.empty(dw.shape(), x.dtype());
  ConvOperands operands{x.raw(), scratch.raw(), dy.raw()};
  operands.scale = load.scale.raw(), operands.shift = load.shift.raw();
  context.runtime().conv_plans().run(
      context, problem_of(context, ConvKind::normalized_wgrad, x, dw.shape(), dy, options, operands), operands,
      "conv2d_wgrad_on_load");
  store_gradient(context, scratch, dw, add);
}

bool conv2d_dgrad_with_sums(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options,
                            BatchNormSaved& before, const Tensor& dx) {
  if (is_depthwise(before.x.shape(), w.shape(), options)) return false;
  ConvPlans& plans = context.runtime().conv_plans();
  const Shape channels{before.x.dim(3)};
  const Tensor dbeta = context.empty(channels), dgamma = context.empty(channels);
  const Tensor terms[3] = {context.empty(channels), context.empty(channels), context.empty(channels)};
  ConvOperands operands{dx ? dx.raw() : nullptr, w.raw(), dy.raw(), before.x.raw()};
  operands.mean = before.mean.raw(), operands.inv_std = before.inv_std.raw();
  operands.gamma = before.gamma.raw(), operands.beta = before.beta.raw();
  operands.dbeta = dbeta.raw(), operands.dgamma = dgamma.raw();
  for (size_t i = 0; i < 3; ++i) operands.terms[i] = terms[i].raw();
  const ConvProblem problem =
      problem_of(context, ConvKind::normalized_dgrad, before.x, w.shape(), dy, options, operands);
  if (plans.milliseconds(context, problem, operands, "conv2d_dgrad_with_sums") == ConvPlans::kUnsupported) return false;
  if (!dx) return true;
  plans.run(context, problem, operands, "conv2d_dgrad_with_sums");
  before.dbeta = dbeta, before.dgamma = dgamma;
  return true;
}

bool on_load_supported(Context& context, const Tensor& x, const OnLoad& load, const Tensor& w,
                       const Conv2dOptions& options, const Tensor& y, const ChannelStatistics& sums) {
  if (is_depthwise(x.shape(), w.shape(), options)) return false;
  ConvPlans& plans = context.runtime().conv_plans();
  ConvOperands forward{x.raw(), w.raw(), y.raw(), nullptr, sums.sum.raw(), sums.square.raw()};
  ConvOperands wgrad{x.raw(), w.raw(), y.raw()};
  forward.scale = wgrad.scale = load.scale.raw(), forward.shift = wgrad.shift = load.shift.raw();
  const auto supported = [&](ConvKind kind, const ConvOperands& operands) {
    const ConvProblem problem = problem_of(context, kind, x, w.shape(), y, options, operands);
    return plans.milliseconds(context, problem, operands, "on_load_supported") != ConvPlans::kUnsupported;
  };
  return supported(ConvKind::normalized_forward, forward) && supported(ConvKind::normalized_wgrad, wgrad);
}

}  // namespace dtrain::cuda
