// Per-element arithmetic of the update rules, shared by the CPU and the CUDA arm.
#pragma once

#include <cmath>
#include <type_traits>

#include "libdtrain/core/host_device.h"
#include "libdtrain/ops/update.h"

namespace dtrain {

// In double: no square of a float overflows it, so a sum of squares is finite exactly if every element is.
DT_HD inline double square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

// The numbers of one step, the same for every element but for `rate` and `decay`, which are a segment's.
struct UpdateFactors {
  float rate, decay;
  float gradient;  // multiplies the gradient: the scale, and the clipping by norm
  float limit;     // for each element of it
  float momentum, beta1, beta2, rho, epsilon;
  float correction1, correction2;  // Adam and LAMB: 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t), t counted from 1
  float averaged;                  // share of the new value in the moving average
};

// Beyond them the dynamic loss scale does not move: no gradient of 16 bits needs more, and one that is not finite at
// the smallest is not so because of the scale.
inline constexpr float kSmallestLossScale = 1.0f / 16384, kLargestLossScale = 16777216;

// Whether the gradient of this norm, which is not finite where any element is not, is applied; moves the loss scale.
DT_HD inline bool settle(StepState& s, float norm) {
  if (!s.finite) return false;
  const bool dynamic = s.double_after > 0;
  if (norm < INFINITY) {  // nor NaN
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

// What the gradient arena is multiplied by before all else.
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

// The scaled gradient of an element, clipped.
DT_HD inline float clipped(const UpdateFactors& f, float g) {
  g *= f.gradient;
  g = g < -f.limit ? -f.limit : g;  // two plain choices: no branch in either arm
  return g > f.limit ? f.limit : g;
}

// LAMB: what an element would change by at rate 1.
DT_HD inline float lamb_direction(const UpdateFactors& f, float v, float m, float s) {
  return f.correction1 * m / (std::sqrt(s) * f.correction2 + f.epsilon) + f.decay * v;
}

// LAMB's first pass: moves the moments of an element, and returns its direction.
DT_HD inline float lamb_moments(const UpdateFactors& f, float g, float v, float& m, float& s) {
  g = clipped(f, g);
  m = f.beta1 * m + (1 - f.beta1) * g;
  s = f.beta2 * s + (1 - f.beta2) * g * g;
  return lamb_direction(f, v, m, s);
}

// Whether update_element() moves the state: LAMB's has been moved by its first pass.
constexpr bool moves_state(UpdateRule rule) { return rule != UpdateRule::lamb; }

// One element: `g` from the gradient arena, value `v`, and the state of the rule, `m` and `s` (unused ones may be any).
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
