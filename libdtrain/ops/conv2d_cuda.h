// CUDA convolution helpers for other ops: cuDNN problems, conversion of gradients.
#pragma once

#include "dtrain/ops/conv2d.h"

namespace dtrain::cuda {

struct ConvOperands;
struct ConvProblem;
enum class ConvKind : int64_t;

// cuDNN problem of a call: x and y, or their gradients, and weights of shape `w`.
ConvProblem problem_of(const Context& context, ConvKind kind, const Tensor& x, const Shape& w, const Tensor& y,
                       const Conv2dOptions& options, const ConvOperands& operands);

// to[.., c] = from[.., c], or += if `add`: converts the library's gradient, of any floating-point type, to f32.
// Channels (the last dimension) of `from` beyond those of `to` are dropped.
void store_gradient(Context& context, const Tensor& from, const Tensor& to, bool add);

}  // namespace dtrain::cuda
