// Per-element arithmetic of masked losses, shared by the CPU and CUDA kernels.
#pragma once

#include <cmath>

#include "dtrain/core/host_device.h"

namespace dtrain {

// Contribution of an element to the sum, and its derivative by x.
struct LossTerm {
  float value, slope;
};

struct SigmoidCrossEntropyTerm {
  DT_HD LossTerm operator()(float x, float target) const {
    const float decay = expf(-fabsf(x)), scale = 1.0f / (1.0f + decay);
    return {(x > 0 ? x : 0.0f) - x * target + log1pf(decay), (x < 0 ? decay * scale : scale) - target};
  }
};

struct SmoothL1Term {
  float beta;

  DT_HD LossTerm operator()(float x, float target) const {
    const float d = x - target, size = fabsf(d);
    if (size < beta) return {d * d / (2 * beta), d / beta};
    return {size - beta / 2, d > 0 ? 1.0f : d < 0 ? -1.0f : d};  // d is 0 or NaN
  }
};

// Divisor of a sum; `count` may be null.
DT_HD inline float loss_divisor(float constant, const float* count) {
  if (count == nullptr) return constant;
  return constant * (*count < 1 ? 1.0f : *count);
}

}  // namespace dtrain
