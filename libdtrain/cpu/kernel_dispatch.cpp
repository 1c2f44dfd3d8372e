#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

#ifndef DTRAIN_AVX2_ONLY
Kernels with_vnni() {
  Kernels kernels = avx512::kernels();
  kernels.gemm_u8s8 = avx512_vnni::gemm_kernels_u8s8();
  return kernels;
}

Kernels with_tiles() {
  Kernels kernels = avx512_bf16::kernels();
  kernels.capabilities.amx = true;
  kernels.amx = amx::amx_kernels();
  kernels.peak = amx::peak_kernels();
  return kernels;
}
#endif

// The table is made when it is first asked for: what makes it is code of the set.
template <Kernels (*make)()>
const Kernels& table() {
  static const Kernels kernels = make();
  return kernels;
}

}  // namespace

const Kernels& kernels_of([[maybe_unused]] CpuIsa isa) {
#ifndef DTRAIN_AVX2_ONLY
  switch (isa) {
    case CpuIsa::amx:
      return table<with_tiles>();
    case CpuIsa::avx512_bf16:
      return table<avx512_bf16::kernels>();
    case CpuIsa::avx512_vnni:
      return table<with_vnni>();
    case CpuIsa::avx512:
      return table<avx512::kernels>();
    case CpuIsa::avx2:
      break;
  }
#endif
  return table<avx2::kernels>();
}

}  // namespace dtrain::cpu
