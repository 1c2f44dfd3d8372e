// Batch normalisation, relu and max-pooling as one op: the stem of a ResNet, whose normalised image is the largest of
// the network and is then never written. Its reference is the plain composition max_pool(relu(batch_norm(x))); a test
// demands equality with it.
#pragma once

#include "libdtrain/ops/batch_norm.h"
#include "libdtrain/ops/pool.h"

namespace dtrain {

// Shapes as in batch_norm and max_pool.
Var bn_relu_max_pool(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                     const BatchNormOptions& bn = {}, const PoolOptions& pool = kResNetPool);

}  // namespace dtrain
