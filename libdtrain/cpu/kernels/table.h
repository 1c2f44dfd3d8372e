// All kernels of one instruction set. The sources of this folder are compiled once per set, into the namespace DT_ISA
// of that set: all of them, or, for a set that extends another, those that use what it adds. A context keeps the table
// of its set.
#pragma once

#include "dtrain/core/cpu_isa.h"
#include "libdtrain/cpu/kernels/batch_norm.h"
#include "libdtrain/cpu/kernels/depthwise.h"
#include "libdtrain/cpu/kernels/gemm.h"
#include "libdtrain/cpu/kernels/gemm_amx.h"
#include "libdtrain/cpu/kernels/gemm_u8s8.h"
#include "libdtrain/cpu/kernels/max_pool.h"
#include "libdtrain/cpu/kernels/peak.h"
#include "libdtrain/cpu/kernels/winograd.h"

namespace dtrain::cpu {

// The optional kernels that an instruction set has. Calling others ends the program.
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

#ifdef DT_ISA
// Each enters its kernels into the table.
namespace DT_ISA {
void add_kernels(Kernels&);  // all of the set
void add_gemm_f32(Kernels&);
void add_gemm_bf16(Kernels&);
void add_gemm_u8s8(Kernels&);
void add_gemm_amx(Kernels&);
void add_winograd(Kernels&);
void add_depthwise(Kernels&);
void add_batch_norm(Kernels&);
void add_max_pool(Kernels&);
void add_peak(Kernels&);
}  // namespace DT_ISA
#endif

}  // namespace dtrain::cpu
