// All kernels of one instruction set. Each source of this folder is compiled once per set, into the namespace DT_ISA of
// that set; a context keeps the table of the set that it was made for.
#pragma once

#include "libdtrain/core/cpu_isa.h"
#include "libdtrain/cpu/kernels/batch_norm.h"
#include "libdtrain/cpu/kernels/depthwise.h"
#include "libdtrain/cpu/kernels/max_pool.h"
#include "libdtrain/cpu/kernels/peak.h"
#include "libdtrain/cpu/kernels/product.h"
#include "libdtrain/cpu/kernels/product_int8.h"
#include "libdtrain/cpu/kernels/tile_product.h"
#include "libdtrain/cpu/kernels/winograd.h"

namespace dtrain::cpu {

struct Kernels {
  ProductKernels product;
  ByteProductKernels byte_product;
  TileKernels tiles;
  WinogradKernels winograd;
  DepthwiseKernels depthwise;
  PeakKernels peak;
  BatchNormKernels batch_norm;
  MaxPoolKernels max_pool;
};

// The caller has made sure that the processor has the instruction set.
const Kernels& kernels_of(CpuIsa isa);

namespace avx2 {
const Kernels& kernels();
}
namespace avx512 {
const Kernels& kernels();
}

namespace avx512_vnni {
const Kernels& kernels();
}

namespace avx512_bf16 {
const Kernels& kernels();
}

namespace amx {
const Kernels& kernels();
}

#ifdef DT_ISA
namespace DT_ISA {
ProductKernels product_kernels();
ByteProductKernels byte_product_kernels();
TileKernels tile_kernels();
WinogradKernels winograd_kernels();
DepthwiseKernels depthwise_kernels();
PeakKernels peak_kernels();
BatchNormKernels batch_norm_kernels();
MaxPoolKernels max_pool_kernels();
}  // namespace DT_ISA
#endif

}  // namespace dtrain::cpu
