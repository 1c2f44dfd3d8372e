// What the convolutions of conv_bn_act do for the batch norms before and after them, where a GPU gains by it. On a CPU
// they make the sums for the batch norms after them and, where they widen, those batch norms' gradients; the rest are
// the plain operations there.
#pragma once

#include "libdtrain/ops/batch_norm_parts.h"
#include "libdtrain/ops/conv2d.h"

namespace dtrain {

struct ConvWithSums {
  Var y;
  ChannelSums sums{};  // over y, or undefined
  // Where not null, the batch norm that reads y may leave the gradient of y here.
  std::shared_ptr<DeferredGrad> deferred{};
};
// y = conv2d(x, w) without bias, where x is the result of the batch norm `in`:
// - Before it. Where in.load is defined, the batch norm has still to be applied: in.y is what it reads, and the
//   convolution computes x from that as it reads, forward and again for the gradient of w. x itself is never in memory.
//   Where in.saved is not null, backward may begin the gradient of the batch norm while it makes dx, and leaves in
//   *in.saved how far it has come. Where both are empty, in.y is any tensor.
// - After it. The batch norm that reads y starts from sums over y; `worth` is how many milliseconds it saves if it gets
//   them. The convolution makes them as it writes y where that costs it less, and in any case where in.load is defined.
ConvWithSums conv2d_with_sums(Tape& tape, const Normalized& in, const Var& w, const Conv2dOptions& options,
                              float worth);

// Two layers of a chain, the first one reading images of shape x and type dtype.
struct ConvBnActPair {
  Shape x;
  DType dtype;
  Shape w, next_w;
  Conv2dOptions conv, next_conv;
  bool on_load = false;  // the first one applies a batch norm itself
};

namespace cpu {
// Whether the gradients of a convolution of images [n,h,w,c] are to be made from a DeferredGrad.
bool defers_gradient(const Context&, const Shape& x, const Shape& w, const Conv2dOptions&, DType);
// conv2d_wgrad and conv2d_dgrad, from the gradient of what reads the convolution's result.
void conv2d_grads_deferred(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const DeferredGrad&,
                           const Tensor& dz, const GradTarget& dw, const GradTarget& dx);
// The sums over y, or undefined ones.
ChannelSums conv2d_with_sums(Context&, const Tensor& x, const OnLoad&, const Tensor& w, const Conv2dOptions&,
                             const Tensor& y, float worth);
void conv2d_wgrad_on_load(Context&, const Tensor& x, const OnLoad&, const Tensor& dy, const Conv2dOptions&,
                          const Tensor& dw, bool add);
// conv2d_dgrad that may begin the gradient of the batch norm `before`, whose result was x: dx is then 0 where relu was,
// and before.dbeta and before.dgamma are defined.
void conv2d_dgrad_before(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, BatchNormSaved& before,
                         const Tensor& dx);
// Whether the second layer is to apply the first one's batch norm.
bool takes_on_load(Context&, const ConvBnActPair&);
// Milliseconds that batch norm in training of images [n,h,w,c] saves where their sums are known; 0 where nobody makes
// them.
float batch_norm_sums_worth(Context&, const Shape& x, DType, Activation, bool residual);
}  // namespace cpu

template <>
inline constexpr bool takes_bf16<cpu::conv2d_with_sums> = true;
template <>
inline constexpr bool takes_bf16<cpu::conv2d_wgrad_on_load> = true;
template <>
inline constexpr bool takes_bf16<cpu::conv2d_dgrad_before> = true;

namespace cuda {
// What the BatchNormSchedule does not decide, the plan file does; what neither does is the plain way, unless the
// schedule asks to measure it: then each choice is measured at the first call of its kind, on made-up images, and kept
// in the plan file. A way is taken where its results agree with the plain one's, up to roundings, and it is faster.
decltype(cpu::takes_on_load) takes_on_load;
decltype(cpu::conv2d_dgrad_before) conv2d_dgrad_before;
decltype(cpu::batch_norm_sums_worth) batch_norm_sums_worth;
decltype(cpu::conv2d_with_sums) conv2d_with_sums;
decltype(cpu::conv2d_wgrad_on_load) conv2d_wgrad_on_load;
}  // namespace cuda

}  // namespace dtrain
