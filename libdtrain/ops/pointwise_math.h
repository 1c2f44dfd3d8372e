// Per-element arithmetic of element-wise ops, shared by the CPU and CUDA kernels.
#pragma once

#include "dtrain/core/host_device.h"
#include "dtrain/core/rng.h"

namespace dtrain {

// NaN is propagated, so that divergence is visible.
DT_HD inline float relu(float x) { return x < 0 ? 0 : x; }

// Gradient of relu's input from that of its output y.
DT_HD inline float relu_grad(float dy, float y) { return y > 0 ? dy : 0.0f; }

DT_HD inline float normalize_pixel(float x, float mean, float scale) { return (x - mean) * scale; }

// Random words of elements [4 * block, 4 * block + 4) of one dropout call in one step.
DT_HD inline Philox::Block dropout_words(uint64_t seed, uint64_t step, uint64_t stream, uint64_t block) {
  return Philox::block(seed, stream, step << 32 | block);
}

// 0 for dropped elements, else the scale.
DT_HD inline float dropout_factor(uint32_t word, float rate) {
  return unit_float(word) < rate ? 0.0f : 1.0f / (1.0f - rate);
}

}  // namespace dtrain
