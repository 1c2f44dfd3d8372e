#include "libdtrain/ops/conv_bn_fusion.h"

#include "dtrain/core/dispatch.h"
#include "dtrain/core/profiler.h"
#include "libdtrain/cpu/conv/algorithms.h"
#include "libdtrain/cpu/conv/bn_fused_grad.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/gemm/statistics.h"
#include "libdtrain/ops/batch_norm_math.h"
#include "libdtrain/ops/conv2d_kernels.h"

namespace dtrain {

ConvWithStatistics conv2d_with_statistics(Tape& tape, const Normalized& in, const Var& w, const Conv2dOptions& options,
                                          float worth) {
  Context& context = tape.context();
  const Var& x = in.y;
  const Tensor y = conv2d_output(context, x, w, options);
  const ChannelStatistics sums =
      DT_DISPATCH(context, conv2d_with_statistics)(x.value, in.load, w.value, options, y, worth);
  // As conv2d does, backward keeps the images for dw alone and the filters for dx alone.
  const Var kept_x{w.needs_grad() ? x.value : Tensor(), x.slot}, kept_w{x.needs_grad() ? w.value : Tensor(), w.slot};
  tape.op_observer().note(options);
  tape.count_flops(conv2d_flops(y.shape(), w.shape()));
  std::shared_ptr<DeferredGrad> deferred;
  if (context.is_cpu() && x.needs_grad() && w.needs_grad() &&
      cpu::defers_gradient(context, x.shape(), w.shape(), options, x.value.dtype()))
    deferred = std::make_shared<DeferredGrad>();
  const Var out =
      tape.record("conv2d", y, {&x, &w},
                  [x = kept_x, load = in.load, before = in.saved, w = kept_w, options, deferred](
                      Tape& t, const Tensor& dy) mutable {
                    Context& c = t.context();
                    if (deferred && deferred->defined())
                      return cpu::conv2d_grads_deferred(c, x.value, w.value, options, *deferred, dy, *t.grad_target(w),
                                                        *t.grad_target(x));
                    if (const auto target = t.grad_target(w))
                      DT_DISPATCH(c, conv2d_wgrad_on_load)(x.value, load, dy, options, target->dx, target->add);
                    x.value = {};  // where nobody else holds it, dx takes its place
                    const auto target = t.grad_target(x);
                    if (target && before)
                      DT_DISPATCH(c, conv2d_dgrad_before)(dy, w.value, options, *before, target->dx);
                    else if (target)
                      DT_DISPATCH(c, conv2d_dgrad)(dy, w.value, options, target->dx, target->add);
                  });
  return {out, sums, deferred};
}

namespace cpu {

bool defers_gradient(const Context& context, const Shape& x, const Shape& w, const Conv2dOptions& options,
                     DType dtype) {
  return !bn_fused_grads_declined(context, shape_of(x, w, conv2d_shape(x, w, options), options), dtype);
}

void conv2d_grads_deferred(Context& context, const Tensor& x, const Tensor& w, const Conv2dOptions& options,
                           const DeferredGrad& deferred, const Tensor& dz, const GradTarget& dw, const GradTarget& dx) {
  const KernelSpan span(context.profiler(), "conv2d_grads"), algorithm(context.profiler(), "bn_fused_grad");
  with_elements(dz.dtype(), [&]<class T>(T) {
    const auto make = [&](int64_t begin, int64_t end, T* dy) { deferred_rows(context, deferred, dz, begin, end, dy); };
    bn_fused_grads(context, shape_of(x.shape(), w.shape(), dz.shape(), options), x.data<T>(), w.data<T>(),
                   BlockwiseGradient<T>{dz.data<T>(), deferred.saved.x.data<T>(), make}, dw.dx.data<float>(), dw.add,
                   dx.dx.data<T>(), dx.add);
  });
}

namespace {

// Sums about the mean.
ChannelStatistics statistics_of(Context& context, FusedStatistics& statistics, int64_t channels) {
  const ChannelStatistics all{context.empty({channels}), context.empty({channels}), context.empty({channels})};
  for (int64_t i = 0; i < channels; ++i) {
    const Moments moments = statistics.moments(i);
    const auto pivot = static_cast<float>(moments.mean);
    const PivotSums about = sums_about(pivot, moments);
    all.pivot.data<float>()[i] = pivot;
    all.sum.data<float>()[i] = static_cast<float>(about.sum);
    all.square.data<float>()[i] = static_cast<float>(about.square);
  }
  return all;
}

}  // namespace

ChannelStatistics conv2d_with_statistics(Context& context, const Tensor& x, const OnLoad&, const Tensor& w,
                                         const Conv2dOptions& options, const Tensor& y, float worth) {
  const int64_t channels = y.dim(3);
  if (worth <= 0 || channels % FusedStatistics::kBlock != 0) {
    conv2d(context, x, w, {}, options, y);
    return {};
  }
  FusedStatistics statistics(context, channels);
  bool fused = false;
  with_elements(x.dtype(), [&]<class T>(T) {
    fused = run_conv<T>(context, ConvPass::forward, shape_of(x, w, y, options),
                        {.x = x.data<T>(), .w = w.data<T>(), .y = y.data<T>(), .statistics = &statistics});
  });
  return fused ? statistics_of(context, statistics, channels) : ChannelStatistics{};
}

void conv2d_wgrad_on_load(Context& context, const Tensor& x, const OnLoad&, const Tensor& dy,
                          const Conv2dOptions& options, const Tensor& dw, bool add) {
  conv2d_wgrad(context, x, dy, options, dw, add);
}

void conv2d_dgrad_before(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options,
                         BatchNormSaved&, const Tensor& dx) {
  conv2d_dgrad(context, dy, w, options, dx, false);
}

bool takes_on_load(Context&, const ConvBnActPair&) { return false; }

// Always something: a product's columns are added up while they are in registers.
float batch_norm_sums_worth(Context&, const Shape&, DType, Activation, bool) { return 1; }

}  // namespace cpu
}  // namespace dtrain
