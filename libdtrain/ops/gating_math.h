// Per-element arithmetic of the ops that multiply, shared by the CPU and the CUDA arm.
#pragma once

#include <bit>
#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// e^x within two units in the last place, for loops that are to be vectorised, which calls of the library are not. x is
// limited to [-87, 88], so that the result is a normal number; NaN stays NaN.
DT_HD inline float vector_exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // x = n log(2) + r: the addition rounds to an integer, which is then in the low bits of the sum.
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  const float rounded = x * 1.44269504f + kRound, n = rounded - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // The Taylor series up to r^7: |r| is at most log(2) / 2.
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

// From the input, because 1 - y has lost its digits where y was rounded to 16 bits near 1.
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
