// Convolution, batch normalisation, residual add and activation as one op: the unit that the speed of a ResNet hangs
// on. Its reference is the plain composition act(batch_norm(conv2d(x, w)) + residual); a test demands equality with it.
#pragma once

#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/conv2d.h"

namespace dtrain {

// Shapes as in conv2d and batch_norm; `residual` null or of the output's shape.
Var conv_bn_act(Tape& tape, const Var& x, const Var& w, const Conv2dOptions& conv, const Var& gamma, const Var& beta,
                const BatchNormState& state, const BatchNormOptions& bn, Activation activation,
                const Var* residual = nullptr);

}  // namespace dtrain
