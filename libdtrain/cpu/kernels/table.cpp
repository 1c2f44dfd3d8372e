#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {

Kernels kernels() {
  return {product_kernels(),   byte_product_kernels(), tile_kernels(),       winograd_kernels(),
          depthwise_kernels(), peak_kernels(),         batch_norm_kernels(), max_pool_kernels()};
}

}  // namespace dtrain::cpu::DT_ISA
