#include "dtrain/core/error.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu {

// Sets that extend another one compile only the kernels that use what they add.
namespace scalar {
void add_kernels(Kernels&);
}
namespace avx2 {
void add_kernels(Kernels&);
}
namespace avx512 {
void add_kernels(Kernels&);
}
namespace avx512_vnni {
void add_gemm_u8s8(Kernels&);
}
namespace avx512_bf16 {
void add_kernels(Kernels&);
}
namespace amx {
void add_gemm_amx(Kernels&);
void add_peak(Kernels&);
}  // namespace amx

namespace {

// Stands for every kernel that an instruction set lacks.
template <class Result, class... Arguments>
Result unsupported(Arguments...) {
  throw Error("a CPU kernel was called that the instruction set lacks: see Kernels::capabilities");
}

// Made when it is first asked for: what fills it is code of the set.
template <void (*... add)(Kernels&)>
const Kernels& table() {
  static const Kernels kernels = [] {
    Kernels all{};
    all.gemm.indirect_bf16 = unsupported;
    all.gemm.transposed_a_bf16 = unsupported;
    all.gemm.interleave_pairs = unsupported;
    all.amx = {unsupported, unsupported, unsupported, unsupported};
    all.peak.multiply_add_pairs = unsupported;
    (add(all), ...);
    return all;
  }();
  return kernels;
}

}  // namespace

const Kernels& kernels_of(CpuIsa isa) {
  constexpr CpuIsa kHighest = CpuIsa::DTRAIN_HIGHEST_ISA;  // what is above it is not compiled
  if constexpr (kHighest > CpuIsa::avx2) {
    if (isa == CpuIsa::amx) return table<avx512_bf16::add_kernels, amx::add_gemm_amx, amx::add_peak>();
    if (isa == CpuIsa::avx512_bf16) return table<avx512_bf16::add_kernels>();
    if (isa == CpuIsa::avx512_vnni) return table<avx512::add_kernels, avx512_vnni::add_gemm_u8s8>();
    if (isa == CpuIsa::avx512) return table<avx512::add_kernels>();
  }
  if constexpr (kHighest >= CpuIsa::avx2)
    if (isa != CpuIsa::scalar) return table<avx2::add_kernels>();
  return table<scalar::add_kernels>();
}

}  // namespace dtrain::cpu
