// Batch normalisation, relu and max-pooling as one op: the stem of a ResNet, whose normalised image is the largest of
// the network and is then never written. Its reference is the plain composition max_pool(relu(batch_norm(x))); a test
// demands equality with it.
#pragma once

#include "libdtrain/ops/batch_norm_parts.h"
#include "libdtrain/ops/pool.h"

namespace dtrain {

// Shapes as in batch_norm and max_pool.
Var bn_relu_max_pool(Tape& tape, const Var& x, const Var& gamma, const Var& beta, const BatchNormState& state,
                     const BatchNormOptions& bn = {}, const PoolOptions& pool = kResNetPool);

namespace cpu {
// The forward pass in training, with the statistics of x. out.y and `argmax` are pooled, see max_pool; no mask is
// written.
void bn_relu_max_pool(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const PoolOptions&, const BatchNormOutputs& out, const Tensor& argmax);
// The gradients that follow from dy, that of the pooled image. There is no residual.
void bn_relu_max_pool_grad(Context&, const Tensor& dy, const Tensor& argmax, const PoolOptions&, const BatchNormSaved&,
                           const BatchNormGrads&);
}  // namespace cpu

namespace cuda {
decltype(cpu::bn_relu_max_pool) bn_relu_max_pool;
}  // namespace cuda

}  // namespace dtrain
