#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {

const Kernels& kernels_of(CpuIsa isa) { return isa == CpuIsa::avx2 ? avx2::kernels() : avx512::kernels(); }

}  // namespace dtrain::cpu
