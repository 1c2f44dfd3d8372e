#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {

const Kernels& kernels() {
  static const Kernels kernels{product_kernels(), winograd_kernels(), depthwise_kernels(), peak_kernels()};
  return kernels;
}

}  // namespace dtrain::cpu::DT_ISA
