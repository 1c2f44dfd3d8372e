#include "libdtrain/cpu/kernels/gemm_u8s8.h"

#include "libdtrain/cpu/kernels/gemm_u8s8_tile.h"
#include "libdtrain/cpu/kernels/table.h"

namespace dtrain::cpu::DT_ISA {
namespace {

void quantize(int64_t count, const float* x, float scale, float zero, uint8_t* to) {
  const Floats factor = scale - Floats{}, summand = zero - Floats{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_bytes(to + i, multiply_add(load(x + i), factor, summand));
  if (i == count) return;
  float rest[kLanes] = {};
  uint8_t bytes[kLanes];
  for (int64_t j = i; j < count; ++j) rest[j - i] = x[j];
  store_bytes(bytes, multiply_add(load(rest), factor, summand));
  for (int64_t j = i; j < count; ++j) to[j] = bytes[j - i];
}

}  // namespace

GemmKernelsU8S8 gemm_kernels_u8s8() {
  return {kByteRows, kByteColumns, kBytePanels, kMaxPairSum, indirect_u8s8, quantize};
}

}  // namespace dtrain::cpu::DT_ISA
