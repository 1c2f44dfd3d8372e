// Fused batch norm, relu and max pooling: the stem of a ResNet, without storing the normalised image, the largest of
// the network. Equal to the composition max_pool(relu(batch_norm(x))).
#pragma once

#include "dtrain/ops/batch_norm.h"
#include "dtrain/ops/pool.h"

namespace dtrain {

// x [n,h,w,c], gamma and beta [c] -> [n,p,q,c]. Throws Error as batch_norm and max_pool do.
Var bn_relu_max_pool(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                     const BatchNormOptions& bn = {}, const PoolOptions& pool = kResNetPool);

}  // namespace dtrain
