// Convolution, batch normalisation, residual add and activation as one op: the unit that the speed of a ResNet hangs
// on. Its reference is the plain composition act(batch_norm(conv2d(x, w)) + residual); a test demands equality with it.
#pragma once

#include <span>

#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/conv2d.h"

namespace dtrain {

// Shapes as in conv2d and batch_norm; `residual` null or of the output's shape.
Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation,
                const Var* residual = nullptr);

// The arguments of one conv_bn_act.
struct ConvBnActLayer {
  Var w;
  Conv2dOptions conv;
  Var gamma, beta;
  BatchNormState state;
  BatchNormOptions bn;
  Activation activation = Activation::relu;
};
// One after the other; the residual is that of the last. What passes from one to the next is nobody else's, so that it
// need not exist: f16 images on a GPU may stay as the convolution wrote them, and the next one applies batch norm and
// relu as it reads them, in the forward pass and again for its weight gradient. That spares memory the result, which is
// otherwise written once and read twice, and costs slower convolutions: it is done for the pairs of layers where the
// plan file has both ways timed and their results compared. The reference is the plain composition, from which it then
// differs by roundings; see batch_norm_on_load.
Var conv_bn_act(Tape& tape, const Var& x, std::span<const ConvBnActLayer> layers, const Var* residual = nullptr);
// The same with a residual that the caller gives up. Where nobody else has its memory, the result of a tape with
// PreparedWeights is added to it in place: x is a copy so that the caller can give that up, too, if they are the same.
Var conv_bn_act(Tape& tape, Var x, std::span<const ConvBnActLayer> layers, Var&& residual);

}  // namespace dtrain
