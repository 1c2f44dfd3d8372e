#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {

Kernels kernels() {
  Capabilities capabilities;
#ifdef __AVX512BF16__
  capabilities.bf16 = true;
#endif
  return {capabilities,        gemm_kernels(), gemm_kernels_u8s8(),  amx_kernels(),     winograd_kernels(),
          depthwise_kernels(), peak_kernels(), batch_norm_kernels(), max_pool_kernels()};
}

}  // namespace dtrain::cpu::DT_ISA
