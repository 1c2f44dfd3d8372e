// Fused convolution, batch norm, residual add and activation: act(batch_norm(conv2d(x, w)) + residual). A test
// compares values and gradients with the unfused composition.
#pragma once

#include <span>

#include "dtrain/ops/batch_norm.h"
#include "dtrain/ops/conv2d.h"

namespace dtrain {

// x [n,h,w,c], w [k,r,s,c / groups], gamma and beta [k] -> [n,p,q,k]; `residual` null or of that shape. Throws Error as
// conv2d and batch_norm do.
Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation,
                const Var* residual = nullptr);

// Arguments of one conv_bn_act.
struct ConvBnActLayer {
  Var w;
  Conv2dOptions conv;
  Var gamma, beta;
  BatchNormState state;
  BatchNormOptions bn;
  Activation activation = Activation::relu;
};
// Chain of layers; `residual` is added in the last. In f16 on a GPU a convolution may apply the batch norm and relu of
// the layer before it on load, in forward and wgrad, so that the normalised images are never stored. The plan file
// selects the pairs of layers for which this is faster. Results then differ from the unfused composition by rounding;
// see batch_norm_on_load.
Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnActLayer> layers, const Var* residual = nullptr);
// As above, but may overwrite the residual in place, with PreparedWeights and if no other Tensor refers to its memory.
// x is passed by value so that the caller can move it in, too, where x and residual are the same tensor.
Var conv_bn_act(Tape& tape, Var x, std::span<const ConvBnActLayer> layers, Var&& residual);

}  // namespace dtrain
