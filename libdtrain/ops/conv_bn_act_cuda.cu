// Choices between ways through convolutions and batch norms: sums made by the convolution or not, batch norm applied by
// the next convolution or not.
#include "libdtrain/ops/conv_bn_act.h"

#include <cmath>

#include "libdtrain/core/rng.h"
#include "libdtrain/cuda/cudnn_plan.h"
#include "libdtrain/cuda/kernels.cuh"
#include "libdtrain/ops/batch_norm_plans.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

// Numbers in [-1, 1) without an order.
template <class T>
__global__ __launch_bounds__(kThreads) void fill_kernel(T* to, int64_t count, uint64_t seed) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride)
    to[i] = from_float<T>(2 * unit_float(Philox::block(seed, 0, static_cast<uint64_t>(i))[0]) - 1);
}

// Of each block: the sums of (x - expected)^2 and of expected^2.
template <class T>
__global__ __launch_bounds__(kThreads) void distance_kernel(const T* x, const T* expected, int64_t count, double* to) {
  double* const scratch = shared_memory<double>();
  double difference = 0, size = 0;
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    const float e = to_float(expected[i]), d = to_float(x[i]) - e;
    difference += double{d} * d;
    size += double{e} * e;
  }
  difference = block_sum(difference, scratch);
  size = block_sum(size, scratch);
  if (threadIdx.x == 0) to[2 * blockIdx.x] = difference, to[2 * blockIdx.x + 1] = size;
}

// |x - expected| / |expected|
double relative_distance(Context& context, const Tensor& x, const Tensor& expected) {
  const unsigned blocks = blocks_for(context, x.count(), kThreads, 1);
  const Tensor sums = context.empty({blocks * int64_t{2 * sizeof(double)}}, DType::u8);
  dispatch_floating(x.dtype(), "relative_distance", [&](auto type) {
    using T = decltype(type);
    launch(context, distance_kernel<T>, {blocks, kThreads, kThreads / kWarp * sizeof(double)}, x.data<T>(),
           expected.data<T>(), x.count(), reinterpret_cast<double*>(sums.raw()));
  });
  std::vector<double> values(2 * blocks);
  context.download(sums, values.data(), "relative_distance");
  double difference = 0, size = 0;
  for (unsigned i = 0; i < blocks; ++i) difference += values[2 * i], size += values[2 * i + 1];
  return std::sqrt(difference / size);
}

// Both ways through a pair of layers, on images of its own: forward, with the batch norm of either layer, and the
// second one's weight gradient, which reads the images once more. All else of a step is the same for both.
class Trial {
 public:
  Trial(Context& context, const ConvBnActPair& pair) : context_(context), pair_(pair) {
    const Shape raw = conv2d_shape(pair.x, pair.w, pair.conv), y = conv2d_shape(raw, pair.next_w, pair.next_conv);
    x_ = filled(pair.x, pair.dtype), w_ = filled(pair.w, pair.dtype), next_w_ = filled(pair.next_w, pair.dtype);
    if (pair.on_load) before_ = {filled({pair.x[3]}, pair.dtype), filled({pair.x[3]}, pair.dtype)};
    raw_ = filled(raw, pair.dtype), y_ = filled(y, pair.dtype), dy_ = filled(y, pair.dtype);
    load_ = {filled({raw[3]}, pair.dtype), filled({raw[3]}, pair.dtype)};
    first_ = norm_of(raw[3]), second_ = norm_of(y[3]);
    made_ = {context.empty({y[3]}), context.empty({y[3]})};
    for (Result& result : results_) result = {context.empty(y, pair.dtype), context.empty(pair.next_w)};
  }

  bool supported() { return on_load_supported(context_, raw_, load_, next_w_, pair_.next_conv, y_, made_); }
  void run(bool on_load) {
    const Result& to = results_[on_load];
    ChannelSums sums, next_sums;
    conv2d_with_sums(context_, x_, before_, w_, pair_.conv, raw_, on_load ? ConvPlans::kUnsupported : worth(raw_),
                     sums);
    const Tensor z = on_load ? Tensor() : context_.empty(raw_.shape(), raw_.dtype());
    const OnLoad load = on_load ? load_ : OnLoad{};
    normalize(first_, raw_, sums, z, load);
    const Tensor& images = on_load ? raw_ : z;
    conv2d_with_sums(context_, images, load, next_w_, pair_.next_conv, y_, worth(y_), next_sums);
    normalize(second_, y_, next_sums, to.y, {});
    conv2d_wgrad_on_load(context_, images, load, dy_, pair_.next_conv, to.dw, false);
  }
  // On load scale, shift and dw are rounded to f16, by 2^-12 of their size on average, and the results differ by little
  // more than that. What is wrong at the border of the images, or in one tile, is off by more.
  bool agree() {
    constexpr double kMost = 0x1p-8;
    return relative_distance(context_, results_[1].y, results_[0].y) < kMost &&
           relative_distance(context_, results_[1].dw, results_[0].dw) < kMost;
  }

 private:
  struct Norm {
    Tensor gamma, beta, mean, inv_std;
    BatchNormState state;
  };
  struct Result {
    Tensor y, dw;
  };

  Tensor filled(Shape shape, DType dtype) {
    const Tensor tensor = context_.empty(shape, dtype);
    dispatch_floating(dtype, "conv_bn_act", [&](auto type) {
      using T = decltype(type);
      launch(context_, fill_kernel<T>, {blocks_for(context_, tensor.count(), kThreads), kThreads}, tensor.data<T>(),
             tensor.count(), ++seed_);
    });
    return tensor;
  }
  Norm norm_of(int64_t channels) {
    const auto made = [&] { return filled({channels}, DType::f32); };
    return {made(), made(), made(), made(), {made(), made()}};
  }
  float worth(const Tensor& y) {
    return dtrain::batch_norm_sums_worth(context_, y.shape(), y.dtype(), Activation::relu, false);
  }
  void normalize(const Norm& norm, const Tensor& x, const ChannelSums& sums, const Tensor& y, const OnLoad& load) {
    batch_norm_train(context_, {x, norm.gamma, norm.beta, {}, Activation::relu, sums}, norm.state, {},
                     {y, norm.mean, norm.inv_std, {}, load});
  }

  Context& context_;
  const ConvBnActPair& pair_;
  uint64_t seed_ = 0;
  Tensor x_, w_, raw_, next_w_, y_, dy_;
  OnLoad before_, load_;
  Norm first_, second_;
  ChannelSums made_;
  Result results_[2];  // of the plain composition, and on load
};

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

void conv2d_with_sums(Context& context, const Tensor& x, const OnLoad& load, const Tensor& w,
                      const Conv2dOptions& options, const Tensor& y, float worth, ChannelSums& sums) {
  if (worth > 0 || load.defined()) {
    const ChannelSums made{context.empty({y.dim(3)}), context.empty({y.dim(3)})};
    if (load.defined()) {
      conv2d_on_load(context, x, load, w, options, y, made);
      sums = made;
      return;
    }
    if (statistics_cost(context, x, w, options, y, made.sum, made.square) < worth &&
        conv2d_with_statistics(context, x, w, options, y, made.sum, made.square)) {
      sums = made;
      return;
    }
  }
  conv2d(context, x, w, {}, options, y);
}

void takes_on_load(Context& context, const ConvBnActPair& pair, bool& takes) {
  takes = false;
  if (pair.dtype != DType::f16) return;  // cuDNN has no other
  const Runtime& runtime = context.runtime();
  const BatchNormSchedule& schedule = context.runtime().batch_norm_plans().schedule();
  const Shape images = conv2d_shape(pair.x, pair.w, pair.conv);
  if (schedule.on_load >= 0) {
    takes = schedule.on_load == 1 && Trial(context, pair).supported();
    return;
  }
  if (images.count() * static_cast<int64_t>(size_of(pair.dtype)) < schedule.least_measured) return;
  const std::string name = name_of(pair);
  takes = context.runtime().conv_plans().chosen(context, name, [&] {
    Trial trial(context, pair);
    if (!trial.supported()) return false;
    for (const bool on_load : {false, true}) trial.run(on_load);
    if (!trial.agree()) {
      context.notices().push_back(concat(name, ": cuDNN's fused convolutions give other results, and are not used"));
      return false;
    }
    const float plain = time_of(runtime, [&] { trial.run(false); });
    return time_of(runtime, [&] { trial.run(true); }) < plain;
  });
}

}  // namespace dtrain::cuda
