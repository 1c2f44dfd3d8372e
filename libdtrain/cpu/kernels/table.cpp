#include "libdtrain/cpu/kernels/table.h"

#include "libdtrain/cpu/kernels/isa/isa.h"

namespace dtrain::cpu::DT_ISA {

void add_kernels(Kernels& kernels) {
  add_gemm_f32(kernels);
  add_gemm_u8s8(kernels);
#ifdef DT_BF16
  add_gemm_bf16(kernels);
#endif
#ifdef DT_AMX
  add_gemm_amx(kernels);
#endif
  add_winograd(kernels);
  add_depthwise(kernels);
  add_batch_norm(kernels);
  add_max_pool(kernels);
  add_peak(kernels);
}

}  // namespace dtrain::cpu::DT_ISA
