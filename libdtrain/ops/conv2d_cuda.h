// What the CUDA arm of convolution shares with those of other ops.
#pragma once

#include "libdtrain/ops/conv2d.h"

namespace dtrain::cuda {

struct ConvOperands;
struct ConvProblem;
enum class ConvKind : int64_t;

// A call as a problem of cuDNN's: x and y, or the gradients in their places, and filters of shape `w`.
ConvProblem problem_of(const Context& context, ConvKind kind, const Tensor& x, const Shape& w, const Tensor& y,
                       const Conv2dOptions& options, const ConvOperands& operands);

// to[.., c] = from[.., c], or += it: a gradient into its f32 place from where the library left it, of any floating
// type. `from` may have more channels (the last extent) than `to`: the rest is dropped.
void store_gradient(Context& context, const Tensor& from, const Tensor& to, bool add);

}  // namespace dtrain::cuda
