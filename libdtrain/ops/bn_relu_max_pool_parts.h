// Kernels of bn_relu_max_pool. Internal: users include bn_relu_max_pool.h.
#pragma once

#include "dtrain/ops/bn_relu_max_pool.h"
#include "libdtrain/ops/batch_norm_parts.h"

namespace dtrain {

namespace cpu {
// Forward pass in training, with the batch statistics of x. out.y and `argmax` are pooled, see max_pool; no mask is
// written.
void bn_relu_max_pool(Context&, const BatchNormInputs&, const BatchNormState&, const BatchNormOptions&,
                      const PoolOptions&, const BatchNormOutputs& out, const Tensor& argmax);
// Backward pass from dy, the gradient of the pooled image. There is no residual.
void bn_relu_max_pool_grad(Context&, const Tensor& dy, const Tensor& argmax, const PoolOptions&, const BatchNormSaved&,
                           const BatchNormGrads&);
}  // namespace cpu

namespace cuda {
decltype(cpu::bn_relu_max_pool) bn_relu_max_pool;
}  // namespace cuda

}  // namespace dtrain
