// CPU and CUDA kernels of dtrain/ops/loss.h.
#pragma once

#include "dtrain/ops/loss.h"

namespace dtrain {

namespace cpu {
// `probabilities` [n, classes] and `divisor` [1], the number of unmasked rows (at least 1), are saved for backward; all
// outputs are f32.
void softmax_cross_entropy(Context&, const Tensor& logits, const Tensor& labels, const SoftmaxCrossEntropyOptions&,
                           const Tensor& probabilities, const Tensor& divisor, const Classification& result);
// dlogits = dloss * (probabilities - target) / divisor
void softmax_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& divisor,
                                const Tensor& labels, const SoftmaxCrossEntropyOptions&, const Tensor& dlogits,
                                bool add);
void softmax(Context&, const Tensor& logits, const Tensor& y);
}  // namespace cpu

namespace cuda {
decltype(cpu::softmax_cross_entropy) softmax_cross_entropy;
decltype(cpu::softmax_cross_entropy_grad) softmax_cross_entropy_grad;
decltype(cpu::softmax) softmax;
}  // namespace cuda

}  // namespace dtrain
