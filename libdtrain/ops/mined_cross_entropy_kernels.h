// CPU and CUDA kernels of dtrain/ops/mined_cross_entropy.h.
#pragma once

#include "dtrain/ops/mined_cross_entropy.h"

namespace dtrain {

namespace cpu {
// losses [n, t] f32, non-negative.
void mine_negatives(Context&, const Tensor& losses, const Tensor& labels, int negatives_per_positive,
                    const Tensor& weights, const Tensor& positives, const Tensor& loss);
// dlogits = dloss / n * weight * (probability - target); probabilities [n * t, c] f32
void mined_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& probabilities, const Tensor& labels,
                              const Tensor& weights, const Tensor& dlogits, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::mine_negatives) mine_negatives;
decltype(cpu::mined_cross_entropy_grad) mined_cross_entropy_grad;
}  // namespace cuda

}  // namespace dtrain
