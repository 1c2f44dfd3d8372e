// Per-element arithmetic of gating ops, shared by the CPU and CUDA kernels.
#pragma once

#include <bit>
#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

// e^x within 2 ulp, vectorisable unlike the library function. x is clamped to [-87, 88], so that results are normal
// numbers; NaN is propagated.
DT_HD inline float vector_exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // Range reduction x = n log(2) + r: the addition rounds to an integer in the low bits of the sum.
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  const float rounded = x * 1.44269504f + kRound, n = rounded - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // Taylor series up to r^7, |r| <= log(2) / 2.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const uint32_t exponent = std::bit_cast<uint32_t>(rounded) << 23;  // n, modulo what the shift drops
  return p * std::bit_cast<float>(exponent + std::bit_cast<uint32_t>(1.0f));
}

DT_HD inline float sigmoid(float x) { return 1.0f / (1.0f + vector_exp(-x)); }

// Computed from the input, since 1 - y loses precision near 1 when y is rounded to 16 bits.
DT_HD inline float sigmoid_grad(float dy, float x) {
  const float s = sigmoid(x);
  return dy * s * (1.0f - s);
}

DT_HD inline float silu(float x) { return x * sigmoid(x); }
DT_HD inline float silu_grad(float dy, float x) {
  const float s = sigmoid(x);
  return dy * s * (1.0f + x * (1.0f - s));
}

}  // namespace dtrain
