// Per-element arithmetic of update rules, shared by the CPU and CUDA kernels.
#pragma once

#include <cmath>
#include <type_traits>

#include "dtrain/core/host_device.h"
#include "dtrain/ops/update.h"

namespace dtrain {

// In double: squares of floats cannot overflow, so the sum is finite if and only if all elements are.
DT_HD inline double square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

// Factors of one step, equal for all elements except `rate` and `decay`, which are per segment.
struct UpdateFactors {
  float rate, decay;
  float gradient;  // factor of the gradient: scale and clipping by norm
  float limit;     // clipping by value
  float momentum, beta1, beta2, rho, epsilon;
  float correction1, correction2;  // Adam and LAMB: 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t), t counted from 1
  float averaged;                  // weight of the new value in the moving average
};

// Bounds of the dynamic loss scale: 16-bit gradients need no more, and a gradient that is non-finite at the smallest is
// so for other reasons.
inline constexpr float kSmallestLossScale = 1.0f / 16384, kLargestLossScale = 16777216;

// Whether to apply a gradient of this norm (non-finite if any element is); adjusts the loss scale.
DT_HD inline bool settle(StepState& s, float norm) {
  if (!s.finite) return false;
  const bool dynamic = s.double_after > 0;
  if (norm < INFINITY) {  // false for NaN
    if (!dynamic || ++s.good_steps < s.double_after) return true;
    s.good_steps = 0;
    if (s.loss_scale < kLargestLossScale) s.loss_scale *= 2;
    return true;
  }
  if (dynamic && s.loss_scale > kSmallestLossScale) {
    s.good_steps = 0;
    s.loss_scale /= 2;
    ++s.skipped;
  } else {
    s.finite = 0;
  }
  return false;
}

// Factor of the gradient arena.
DT_HD inline float unscale(const StepScalars& s) { return s.gradient_scale / s.loss_scale; }

// body(std::integral_constant<UpdateRule, rule>())
template <class Body>
void dispatch_rule(UpdateRule rule, const Body& body) {
  switch (rule) {
    case UpdateRule::sgd:
      return body(std::integral_constant<UpdateRule, UpdateRule::sgd>());
    case UpdateRule::momentum:
      return body(std::integral_constant<UpdateRule, UpdateRule::momentum>());
    case UpdateRule::nesterov:
      return body(std::integral_constant<UpdateRule, UpdateRule::nesterov>());
    case UpdateRule::adamw:
      return body(std::integral_constant<UpdateRule, UpdateRule::adamw>());
    case UpdateRule::adam:
      return body(std::integral_constant<UpdateRule, UpdateRule::adam>());
    case UpdateRule::rmsprop:
      return body(std::integral_constant<UpdateRule, UpdateRule::rmsprop>());
    case UpdateRule::lars:
      return body(std::integral_constant<UpdateRule, UpdateRule::lars>());
    case UpdateRule::lamb:
      return body(std::integral_constant<UpdateRule, UpdateRule::lamb>());
  }
}

// Scaled gradient of an element, clipped.
DT_HD inline float clipped(const UpdateFactors& f, float g) {
  g *= f.gradient;
  g = g < -f.limit ? -f.limit : g;  // two selects: branch-free on CPU and GPU
  return g > f.limit ? f.limit : g;
}

// LAMB: update direction of an element at rate 1.
DT_HD inline float lamb_direction(const UpdateFactors& f, float v, float m, float s) {
  return f.correction1 * m / (std::sqrt(s) * f.correction2 + f.epsilon) + f.decay * v;
}

// First pass of LAMB: updates an element's moments and returns its direction.
DT_HD inline float lamb_moments(const UpdateFactors& f, float g, float v, float& m, float& s) {
  g = clipped(f, g);
  m = f.beta1 * m + (1 - f.beta1) * g;
  s = f.beta2 * s + (1 - f.beta2) * g * g;
  return lamb_direction(f, v, m, s);
}

// Whether update_element() updates the state; LAMB's first pass has done so.
constexpr bool moves_state(UpdateRule rule) { return rule != UpdateRule::lamb; }

// Updates one element: gradient `g`, value `v`, state `m` and `s` of the rule (unused ones are arbitrary).
template <UpdateRule rule>
DT_HD inline void update_element(const UpdateFactors& f, float g, float& v, float& m, float& s) {
  g = clipped(f, g);
  if constexpr (rule == UpdateRule::adamw)
    v -= f.rate * f.decay * v;
  else
    g += f.decay * v;

  if constexpr (rule == UpdateRule::lamb) {
    v -= f.rate * lamb_direction(f, v, m, s);
  } else if constexpr (rule == UpdateRule::sgd) {
    v -= f.rate * g;
  } else if constexpr (rule == UpdateRule::momentum) {
    m = f.momentum * m + g;
    v -= f.rate * m;
  } else if constexpr (rule == UpdateRule::nesterov) {
    m = f.momentum * m + g;
    v -= f.rate * (g + f.momentum * m);
  } else if constexpr (rule == UpdateRule::adamw || rule == UpdateRule::adam) {
    m = f.beta1 * m + (1 - f.beta1) * g;
    s = f.beta2 * s + (1 - f.beta2) * g * g;
    v -= f.rate * f.correction1 * m / (std::sqrt(s) * f.correction2 + f.epsilon);
  } else if constexpr (rule == UpdateRule::rmsprop) {
    s = f.rho * s + (1 - f.rho) * g * g;
    m = f.momentum * m + f.rate * g / std::sqrt(s + f.epsilon);
    v -= m;
  } else {
    static_assert(rule == UpdateRule::lars);
    m = f.momentum * m + f.rate * g;
    v -= m;
  }
}

}  // namespace dtrain
