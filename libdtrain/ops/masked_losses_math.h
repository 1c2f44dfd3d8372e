// Per-element arithmetic of the losses over elements that may not count, shared by the arms.
#pragma once

#include <cmath>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// What an element adds to the sum, and the derivative of that by x.
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
    return {size - beta / 2, d > 0 ? 1.0f : d < 0 ? -1.0f : d};  // d: 0, or not a number
  }
};

// The divisor of a sum; `count` may be null.
DT_HD inline float loss_divisor(float constant, const float* count) {
  if (count == nullptr) return constant;
  return constant * (*count < 1 ? 1.0f : *count);
}

}  // namespace dtrain
