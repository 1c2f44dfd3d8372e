#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {

void add_kernels(Kernels& kernels) {
  add_gemm_f32(kernels);
  add_gemm_u8s8(kernels);
  add_winograd(kernels);
  add_depthwise(kernels);
  add_batch_norm(kernels);
  add_max_pool(kernels);
  add_peak(kernels);
}

}  // namespace dtrain::cpu::DT_ISA
