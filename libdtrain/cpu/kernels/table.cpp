#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {

const Kernels& kernels() {
  static const Kernels kernels{product_kernels(),   byte_product_kernels(), tile_kernels(),       winograd_kernels(),
                               depthwise_kernels(), peak_kernels(),         batch_norm_kernels(), max_pool_kernels()};
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
