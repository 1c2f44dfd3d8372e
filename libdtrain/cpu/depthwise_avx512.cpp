// Compiled for AVX-512, and so without inline functions that other files have, too: the linker keeps one of them.
#include "libdtrain/cpu/depthwise_loops.h"

namespace dtrain::cpu {

const DepthwiseKernels kDepthwiseAvx512{sum_taps<16>, add_products<16>};

}  // namespace dtrain::cpu
