// All kernels of one instruction set. The sources of this folder are compiled once for each set, into the namespace
// DT_ISA of that set: all of them, or, for sets that only add to another, those that make use of what they add. A
// context keeps the table of the set that it was made for.
#pragma once

#include "libdtrain/core/cpu_isa.h"
#include "libdtrain/cpu/kernels/batch_norm.h"
#include "libdtrain/cpu/kernels/depthwise.h"
#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/gemm_amx.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"
#include "libdtrain/cpu/kernels/max_pool.h"
#include "libdtrain/cpu/kernels/peak.h"
#include "libdtrain/cpu/kernels/winograd.h"

namespace dtrain::cpu {

// What an instruction set computes natively. Kernels of what it lacks must not be called.
struct Capabilities {
  bool bf16 = false;  // dot products of bf16 pairs (AVX512_BF16)
  bool amx = false;   // tile registers (AMX_TILE, AMX_BF16, AMX_INT8)
};

struct Kernels {
  Capabilities capabilities;
  GemmKernels gemm;
  GemmKernelsU8S8 gemm_u8s8;
  AmxKernels amx;
  WinogradKernels winograd;
  DepthwiseKernels depthwise;
  PeakKernels peak;
  BatchNormKernels batch_norm;
  MaxPoolKernels max_pool;
};

// The caller has made sure that the processor has the instruction set.
const Kernels& kernels_of(CpuIsa isa);

namespace avx2 {
Kernels kernels();
}
namespace avx512 {
Kernels kernels();
}
namespace avx512_bf16 {
Kernels kernels();
}

// What these sets add: to avx512 and to avx512_bf16.
namespace avx512_vnni {
GemmKernelsU8S8 gemm_kernels_u8s8();
}
namespace amx {
AmxKernels amx_kernels();
PeakKernels peak_kernels();
}  // namespace amx

#ifdef DT_ISA
namespace DT_ISA {
GemmKernels gemm_kernels();
GemmKernelsU8S8 gemm_kernels_u8s8();
AmxKernels amx_kernels();
WinogradKernels winograd_kernels();
DepthwiseKernels depthwise_kernels();
PeakKernels peak_kernels();
BatchNormKernels batch_norm_kernels();
MaxPoolKernels max_pool_kernels();
}  // namespace DT_ISA
#endif

}  // namespace dtrain::cpu
