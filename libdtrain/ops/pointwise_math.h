// Per-element arithmetic of the element-wise ops, shared by the CPU and the CUDA arm.
#pragma once

#include "libdtrain/core/host_device.h"
#include "libdtrain/core/rng.h"

namespace dtrain {

// NaN stays NaN: a diverged network is to be seen, not hidden.
DT_HD inline float relu(float x) { return x < 0 ? 0 : x; }

// The random words of elements [4 * block, 4 * block + 4) of one dropout call of one step.
DT_HD inline Philox::Block dropout_words(uint64_t seed, uint64_t step, uint64_t stream, uint64_t block) {
  return Philox::block(seed, stream, step << 32 | block);
}

// What a dropped-out element is multiplied by.
DT_HD inline float dropout_factor(uint32_t word, float rate) {
  return unit_float(word) < rate ? 0.0f : 1.0f / (1.0f - rate);
}

}  // namespace dtrain
