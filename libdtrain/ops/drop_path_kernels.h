// CPU and CUDA kernels of dtrain/ops/drop_path.h.
#pragma once

#include "dtrain/ops/drop_path.h"

namespace dtrain {

namespace cpu {
// Forward and backward: y = x * mask / (1 - rate), accumulated if `add`.
void drop_path(Context&, const Tensor& x, const DropPathOptions&, uint64_t stream, const Tensor& y, bool add);
}  // namespace cpu

namespace cuda {
decltype(cpu::drop_path) drop_path;
}  // namespace cuda

}  // namespace dtrain
