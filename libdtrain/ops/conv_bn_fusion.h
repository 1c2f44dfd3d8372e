// Convolutions fused with the batch norms before and after them. On a CPU the epilogue of a convolution computes the
// statistics for the batch norm after it, and a widening 1x1 convolution fuses that batch norm's backward pass with its
// own gradients. On a GPU the batch norm before a convolution may be applied on load, where that is faster.
#pragma once

#include "dtrain/ops/conv2d.h"
#include "libdtrain/ops/batch_norm_parts.h"

namespace dtrain {

struct ConvWithStatistics {
  Var y;
  ChannelStatistics sums{};  // statistics of y; undefined if not fused
  // Not null: the batch norm that reads y may defer its gradient to this convolution.
  std::shared_ptr<DeferredGrad> deferred{};
};
// y [n,p,q,k] = conv2d(x, w) without bias; x [n,h,w,c] is the result `in` of the batch norm before the convolution.
// - in.load defined: the convolution applies that batch norm to in.y on load, in forward and wgrad. x is never stored.
// - in.saved not null: dgrad may fuse the reductions of that batch norm's gradient; it then defines dbeta and dgamma
//   of *in.saved.
// - Neither: in.y is any tensor.
// The statistics of the batch norm after the convolution are fused into the epilogue if that costs less than `worth`,
// the milliseconds that this batch norm saves, and always if in.load is defined. Throws Error as conv2d does.
ConvWithStatistics conv2d_with_statistics(Tape& tape, const Normalized& in, const Var& w, const Conv2dOptions& options,
                                          float worth);

// Two layers of a chain, the first with images of shape x and type dtype.
struct ConvBnActPair {
  Shape x;
  DType dtype;
  Shape w, next_w;
  Conv2dOptions conv, next_conv;
  bool on_load = false;  // the first layer applies a batch norm on load
};

namespace cpu {
// Whether a convolution of images [n,h,w,c] fuses the backward pass of the batch norm after it: see DeferredGrad.
bool defers_gradient(const Context&, const Shape& x, const Shape& w, const Conv2dOptions&, DType);
// conv2d_wgrad and conv2d_dgrad, fused with the backward pass of the batch norm that reads the convolution's result.
void conv2d_grads_deferred(Context&, const Tensor& x, const Tensor& w, const Conv2dOptions&, const DeferredGrad&,
                           const Tensor& dz, const GradTarget& dw, const GradTarget& dx);
// Returns the sums over y, undefined where they are not fused.
ChannelStatistics conv2d_with_statistics(Context&, const Tensor& x, const OnLoad&, const Tensor& w,
                                         const Conv2dOptions&, const Tensor& y, float worth);
void conv2d_wgrad_on_load(Context&, const Tensor& x, const OnLoad&, const Tensor& dy, const Conv2dOptions&,
                          const Tensor& dw, bool add);
// conv2d_dgrad that may fuse the first part of the gradient of the batch norm `before`, whose result was x: relu's gate
// is then applied to dx, and before.dbeta and before.dgamma are defined.
void conv2d_dgrad_before(Context&, const Tensor& dy, const Tensor& w, const Conv2dOptions&, BatchNormSaved& before,
                         const Tensor& dx);
// Whether the second layer applies the first layer's batch norm on load.
bool takes_on_load(Context&, const ConvBnActPair&);
// Milliseconds that batch norm in training of images [n,h,w,c] saves if their sums are fused into the convolution
// before it; 0 where no convolution fuses them.
float batch_norm_sums_worth(Context&, const Shape& x, DType, Activation, bool residual);
}  // namespace cpu

template <>
inline constexpr bool takes_bf16<cpu::conv2d_with_statistics> = true;
template <>
inline constexpr bool takes_bf16<cpu::conv2d_wgrad_on_load> = true;
template <>
inline constexpr bool takes_bf16<cpu::conv2d_dgrad_before> = true;

namespace cuda {
// The BatchNormSchedule decides, then the plan file. What neither decides runs unfused, unless the schedule asks for
// autotuning: each choice is then timed at the first call of its kind, on synthetic images, and kept in the plan file.
// A fusion is taken if it is faster and agrees with the unfused result up to rounding.
decltype(cpu::takes_on_load) takes_on_load;
decltype(cpu::conv2d_dgrad_before) conv2d_dgrad_before;
decltype(cpu::batch_norm_sums_worth) batch_norm_sums_worth;
decltype(cpu::conv2d_with_statistics) conv2d_with_statistics;
decltype(cpu::conv2d_wgrad_on_load) conv2d_wgrad_on_load;
}  // namespace cuda

}  // namespace dtrain
