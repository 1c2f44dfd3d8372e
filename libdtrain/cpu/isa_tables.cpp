#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

Kernels with_vnni() {
  Kernels kernels = avx512::kernels();
  kernels.byte_product = avx512_vnni::byte_product_kernels();
  return kernels;
}

Kernels with_tiles() {
  Kernels kernels = avx512_bf16::kernels();
  kernels.tiles = amx::tile_kernels();
  kernels.peak = amx::peak_kernels();
  return kernels;
}

}  // namespace

const Kernels& kernels_of(CpuIsa isa) {
  // A table is made when it is first asked for: what makes it is code of the set.
  switch (isa) {
    case CpuIsa::amx: {
      static const Kernels amx = with_tiles();
      return amx;
    }
    case CpuIsa::avx512_bf16: {
      static const Kernels bf16 = avx512_bf16::kernels();
      return bf16;
    }
    case CpuIsa::avx512_vnni: {
      static const Kernels vnni = with_vnni();
      return vnni;
    }
    case CpuIsa::avx512: {
      static const Kernels avx512 = avx512::kernels();
      return avx512;
    }
    case CpuIsa::avx2:
      break;
  }
  static const Kernels avx2 = avx2::kernels();
  return avx2;
}

}  // namespace dtrain::cpu
