#include "libdtrain/cpu/depthwise_loops.h"

namespace dtrain::cpu {

const DepthwiseKernels kDepthwiseAvx2{sum_taps<8>, add_products<8>};

}  // namespace dtrain::cpu
