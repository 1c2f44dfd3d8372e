// CPU and CUDA kernels of dtrain/ops/update.h.
#pragma once

#include "dtrain/ops/update.h"

namespace dtrain {

namespace cpu {
void l2_loss(Context&, const UpdatePlan&, const Tensor& values, const Tensor& loss);
void update(Context&, const UpdateOptions&, const UpdatePlan&, const UpdateArenas&, const Tensor& norms);
}  // namespace cpu

namespace cuda {
decltype(cpu::l2_loss) l2_loss;
decltype(cpu::update) update;
}  // namespace cuda

}  // namespace dtrain
