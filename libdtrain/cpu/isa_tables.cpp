#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {

const Kernels& kernels_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::amx:
      return amx::kernels();
    case CpuIsa::avx512_bf16:
      return avx512_bf16::kernels();
    case CpuIsa::avx512_vnni:
      return avx512_vnni::kernels();
    case CpuIsa::avx512:
      return avx512::kernels();
    case CpuIsa::avx2:
      break;
  }
  return avx2::kernels();
}

}  // namespace dtrain::cpu
