// CPU and CUDA kernels of dtrain/ops/masked_losses.h.
#pragma once

#include "dtrain/ops/masked_losses.h"

namespace dtrain {

namespace cpu {
void sigmoid_cross_entropy(Context&, const Tensor& x, const Tensor& targets, const Tensor& weights, const LossDivisor&,
                           const Tensor& loss);
void sigmoid_cross_entropy_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& targets,
                                const Tensor& weights, const LossDivisor&, const Tensor& dx, bool add);
void smooth_l1(Context&, const Tensor& x, const Tensor& targets, const Tensor& weights, float beta, const LossDivisor&,
               const Tensor& loss);
void smooth_l1_grad(Context&, const Tensor& dloss, const Tensor& x, const Tensor& targets, const Tensor& weights,
                    float beta, const LossDivisor&, const Tensor& dx, bool add);
void select_class(Context&, const Tensor& x, const Tensor& classes, const Tensor& y);
void select_class_grad(Context&, const Tensor& dy, const Tensor& classes, const Tensor& dx, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::sigmoid_cross_entropy) sigmoid_cross_entropy;
decltype(cpu::sigmoid_cross_entropy_grad) sigmoid_cross_entropy_grad;
decltype(cpu::smooth_l1) smooth_l1;
decltype(cpu::smooth_l1_grad) smooth_l1_grad;
decltype(cpu::select_class) select_class;
decltype(cpu::select_class_grad) select_class_grad;
}  // namespace cuda

}  // namespace dtrain
