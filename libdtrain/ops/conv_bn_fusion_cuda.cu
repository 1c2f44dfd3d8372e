// Choices between ways through convolutions and batch norms: sums made by the convolution or not, batch norm applied by
// the next convolution or not.
#include <algorithm>

#include "libdtrain/cuda/comparison.h"
#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/cuda/graph_timing.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/batch_norm_plans.h"
#include "libdtrain/ops/conv2d_kernels.h"
#include "libdtrain/ops/conv_bn_fusion_cuda.h"

namespace dtrain::cuda {
namespace {

// Random tensors, each with another seed.
class Numbers {
 public:
  explicit Numbers(Context& context) : context_(context) {}
  Tensor operator()(Shape shape, DType dtype) { return random_tensor(context_, shape, dtype, ++seed_); }

 private:
  Context& context_;
  uint64_t seed_ = 0;
};

// Both ways through a pair of layers, on images of its own: forward, with the batch norm of either layer, and the
// second one's weight gradient, which reads the images once more. All else of a step is the same for both.
class ForwardTrial {
 public:
  ForwardTrial(Context& context, const ConvBnActPair& pair) : context_(context), pair_(pair), filled_(context) {
    const Shape raw = conv2d_shape(pair.x, pair.w, pair.conv), y = conv2d_shape(raw, pair.next_w, pair.next_conv);
    x_ = filled_(pair.x, pair.dtype), w_ = filled_(pair.w, pair.dtype), next_w_ = filled_(pair.next_w, pair.dtype);
    if (pair.on_load) before_ = {filled_({pair.x[3]}, pair.dtype), filled_({pair.x[3]}, pair.dtype)};
    raw_ = filled_(raw, pair.dtype), y_ = filled_(y, pair.dtype), dy_ = filled_(y, pair.dtype);
    load_ = {filled_({raw[3]}, pair.dtype), filled_({raw[3]}, pair.dtype)};
    first_ = norm_of(raw[3]), second_ = norm_of(y[3]);
    made_ = {context.empty({y[3]}), context.empty({y[3]})};
    for (Result& result : results_) result = {context.empty(y, pair.dtype), context.empty(pair.next_w)};
  }

  bool supported() { return on_load_supported(context_, raw_, load_, next_w_, pair_.next_conv, y_, made_); }
  void run(bool on_load) {
    const Result& to = results_[on_load];
    const ChannelStatistics sums = conv2d_with_statistics(context_, x_, before_, w_, pair_.conv, raw_,
                                                          on_load ? ConvPlans::kUnsupported : worth(raw_));
    const Tensor z = on_load ? Tensor() : context_.empty(raw_.shape(), raw_.dtype());
    const OnLoad load = on_load ? load_ : OnLoad{};
    normalize(first_, raw_, sums, z, load);
    const Tensor& images = on_load ? raw_ : z;
    const ChannelStatistics next_sums =
        conv2d_with_statistics(context_, images, load, next_w_, pair_.next_conv, y_, worth(y_));
    normalize(second_, y_, next_sums, to.y, {});
    conv2d_wgrad_on_load(context_, images, load, dy_, pair_.next_conv, to.dw, false);
  }
  bool agree() {
    return cuda::is_close(context_, results_[1].y, results_[0].y) &&
           cuda::is_close(context_, results_[1].dw, results_[0].dw);
  }

 private:
  struct Norm {
    Tensor gamma, beta, mean, inv_std;
    BatchNormState state;
  };
  struct Result {
    Tensor y, dw;
  };

  Norm norm_of(int64_t channels) {
    const auto made = [&] { return filled_({channels}, DType::f32); };
    return {made(), made(), made(), made(), {made(), made()}};
  }
  float worth(const Tensor& y) {
    return batch_norm_sums_worth(context_, y.shape(), y.dtype(), Activation::relu, false);
  }
  void normalize(const Norm& norm, const Tensor& x, const ChannelStatistics& sums, const Tensor& y,
                 const OnLoad& load) {
    batch_norm_train(context_, {x, norm.gamma, norm.beta, {}, Activation::relu, sums}, norm.state, {},
                     {y, norm.mean, norm.inv_std, {}, load});
  }

  Context& context_;
  const ConvBnActPair& pair_;
  Numbers filled_;
  Tensor x_, w_, raw_, next_w_, y_, dy_;
  OnLoad before_, load_;
  Norm first_, second_;
  ChannelStatistics made_;
  Result results_[2];  // the plain composition's, and those made on load
};

// Both ways back through a convolution and the batch norm in front of it, alike.
class BackwardTrial {
 public:
  BackwardTrial(Context& context, const Shape& dy, const Shape& w, const Conv2dOptions& options,
                const BatchNormSaved& before)
      : context_(context), options_(options), saved_(before) {
    Numbers filled(context);
    const Shape channels = before.gamma.shape();
    const DType dtype = before.x.dtype();
    dy_ = filled(dy, dtype), w_ = filled(w, dtype), saved_.x = filled(before.x.shape(), dtype);
    for (Tensor* of : {&saved_.mean, &saved_.inv_std, &saved_.gamma, &saved_.beta}) *of = filled(channels, DType::f32);
    for (Result& result : results_)
      result = {context.empty(before.x.shape(), dtype), context.empty(channels), context.empty(channels)};
  }

  bool supported() { return conv2d_dgrad_with_sums(context_, dy_, w_, options_, saved_, {}); }
  void run(bool at_once) {
    BatchNormSaved saved = saved_;
    const auto& [dx, dgamma, dbeta] = results_[at_once];
    if (at_once)
      conv2d_dgrad_with_sums(context_, dy_, w_, options_, saved, dx);
    else
      conv2d_dgrad(context_, dy_, w_, options_, dx, false);
    batch_norm_grad(context_, dx, saved, {dx, dgamma, dbeta, {}});
  }
  // dgamma and dbeta are terms of dx as well, but small ones.
  bool agree() {
    const Result &plain = results_[0], &at_once = results_[1];
    return cuda::is_close(context_, at_once.dx, plain.dx) && cuda::is_close(context_, at_once.dgamma, plain.dgamma) &&
           cuda::is_close(context_, at_once.dbeta, plain.dbeta);
  }

 private:
  struct Result {
    Tensor dx, dgamma, dbeta;
  };

  Context& context_;
  const Conv2dOptions& options_;
  BatchNormSaved saved_;
  Tensor dy_, w_;
  Result results_[2];  // the plain composition's, and those made at once
};

bool worth_asking(const Context& context, const Shape& images) {
  const int64_t bytes = images.count() * static_cast<int64_t>(size_of(DType::f16));
  return bytes >= batch_norm_plans(context).schedule().least_measured;
}

// True where the other way gives the same results and is faster.
template <class Trial>
bool better(Context& context, const std::string& name, Trial&& trial) {
  if (!trial.supported()) return false;
  for (const bool other : {false, true}) trial.run(other);
  if (!trial.agree()) {
    context.notices().push_back(concat(name, ": cuDNN's fused convolutions give other results, and are not used"));
    return false;
  }
  const float plain = graph_milliseconds(context, [&] { trial.run(false); });
  return graph_milliseconds(context, [&] { trial.run(true); }) < plain;
}

// The seam: whether anything is left to a convolution. No GPU has shown yet that it pays. So `forced`, 0 or 1, decides,
// else what was measured where the schedule asked for that, by this process or, in the plan file, another one.
// `images`: [n, h, w, c].
template <class MakeTrial>
bool choose(Context& context, const std::string& name, const Shape& images, int forced, MakeTrial&& trial) {
  if (forced >= 0) return forced == 1 && trial().supported();
  if (!worth_asking(context, images)) return false;
  ConvPlans& plans = context.runtime().conv_plans();
  if (batch_norm_plans(context).schedule().measure_fusions)
    return plans.chosen(context, name, [&] { return better(context, name, trial()); });
  const auto known = plans.known(context, name);
  return known && known->supported;
}

std::string text(const Shape& shape) {
  std::string dims = std::to_string(shape[0]);
  for (int i = 1; i < shape.rank(); ++i) dims += concat("x", shape[i]);
  return dims;
}
std::string text(const Conv2dOptions& o) {
  return concat("s", o.stride.h, "x", o.stride.w, ":d", o.dilation.h, "x", o.dilation.w, ":p", o.padding.top, ",",
                o.padding.bottom, ",", o.padding.left, ",", o.padding.right, ":g", o.groups);
}
// For the plan file: "on_load:f16:x256x56x56x256:w64x1x1x256:s1x1:...:w64x3x3x64:...".
std::string name_of(const ConvBnActPair& pair) {
  return concat(pair.on_load ? "on_load_both:" : "on_load:", pair.dtype, ":x", text(pair.x), ":w", text(pair.w), ":",
                text(pair.conv), ":w", text(pair.next_w), ":", text(pair.next_conv));
}

}  // namespace

float batch_norm_sums_worth(Context& context, const Shape& x, DType dtype, Activation activation, bool residual) {
  if (dtype != DType::f16) return 0;  // cuDNN makes them of no other type
  const BatchNormSchedule& schedule = batch_norm_plans(context).schedule();
  if (schedule.sums_worth >= 0) return schedule.sums_worth;
  if (!worth_asking(context, x)) return 0;
  ConvPlans& plans = context.runtime().conv_plans();
  const std::string name =
      concat("sums:f16:x", text(x), activation == Activation::relu ? ":relu" : "", residual ? ":residual" : "");
  if (const auto known = plans.known(context, name)) return known->milliseconds;
  if (!schedule.measure_fusions || !plans.measures() || context.capturing()) return 0;
  const auto parameter = [&] { return context.empty({x[3]}); };
  const BatchNormOutputs out{context.empty(x, dtype), parameter(), parameter(), {}};
  BatchNormInputs in{context.empty(x, dtype), parameter(), parameter(), {}, activation, {}};
  if (residual) in.residual = context.empty(x, dtype);
  const BatchNormState state{parameter(), parameter()};
  const auto time = [&] { return graph_milliseconds(context, [&] { batch_norm_train(context, in, state, {}, out); }); };
  const float unknown = time();
  in.sums = {parameter(), parameter()};
  const float worth = std::max(unknown - time(), 0.0f);
  plans.keep(context, name, {worth > 0, {}, worth});
  return worth;
}

ChannelStatistics conv2d_with_statistics(Context& context, const Tensor& x, const OnLoad& load, const Tensor& w,
                                         const Conv2dOptions& options, const Tensor& y, float worth) {
  if (worth > 0 || load.defined()) {
    const ChannelStatistics sums{context.empty({y.dim(3)}), context.empty({y.dim(3)})};
    if (load.defined()) {
      conv2d_on_load(context, x, load, w, options, y, sums);
      return sums;
    }
    if (statistics_cost(context, x, w, options, y, sums) < worth &&
        conv2d_with_statistics(context, x, w, options, y, sums))
      return sums;
  }
  conv2d(context, x, w, {}, options, y);
  return {};
}

// cuDNN has the fusions of the following two in f16 only.
bool takes_on_load(Context& context, const ConvBnActPair& pair) {
  return pair.dtype == DType::f16 &&
         choose(context, name_of(pair), conv2d_shape(pair.x, pair.w, pair.conv),
                batch_norm_plans(context).schedule().on_load, [&] { return ForwardTrial(context, pair); });
}

void conv2d_dgrad_before(Context& context, const Tensor& dy, const Tensor& w, const Conv2dOptions& options,
                         BatchNormSaved& before, const Tensor& dx) {
  const bool at_once =
      dx.dtype() == DType::f16 &&
      choose(context, concat("in_dgrad:f16:x", text(dx.shape()), ":w", text(w.shape()), ":", text(options)), dx.shape(),
             batch_norm_plans(context).schedule().in_dgrad,
             [&] { return BackwardTrial(context, dy.shape(), w.shape(), options, before); });
  if (!at_once || !conv2d_dgrad_with_sums(context, dy, w, options, before, dx))
    conv2d_dgrad(context, dy, w, options, dx, false);
}

}  // namespace dtrain::cuda
