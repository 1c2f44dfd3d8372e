// Reference implementation of the update rules in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dtrain/ops/update.h"
#include "tests/testing.h"

namespace dtrain::update_tests {

struct Reference {
  UpdateOptions o;
  Array v, m, s;

  Reference(const UpdateOptions& options, const Array& initial)
      : o(options), v(initial), m(initial.shape), s(initial.shape) {}

  void step(const std::vector<UpdateSegment>& segments, const Array& grads, double lr, double scale, int t) {
    double squares = 0;
    for (const UpdateSegment& segment : segments)
      for (int64_t i = segment.begin; i < segment.end; ++i) squares += scale * scale * grads[i] * grads[i];
    const double norm = std::sqrt(squares);
    const double clip = o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1;
    for (const UpdateSegment& segment : segments) {
      double rate = lr * segment.rate;
      if (o.rule == UpdateRule::lamb) {
        lamb(segment, grads, scale * clip, rate, t);
        continue;
      }
      Larced larced;
      if (o.larc != Larc::none && segment.parameter >= 0)
        larced = larc(segment, grads, scale * clip, rate);
      else if (segment.parameter >= 0)
        rate *= lars_ratio(segment, grads, scale * clip);
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        double g = scale * clip * grads[i];
        if (o.clip_value > 0) g = std::clamp(g, -double{o.clip_value}, double{o.clip_value});
        element(i, larced.factor * g, rate, larced.decays ? larced.factor * segment.weight_decay : 0, t);
      }
    }
  }
  struct Larced {
    double factor = 1;
    bool decays = true;
  };
  Larced larc(const UpdateSegment& segment, const Array& grads, double scale, double lr) const {
    double vv = 0, gg = 0, joint = 0;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const double g = scale * grads[i], with_decay = g + segment.weight_decay * v[i];
      vv += v[i] * v[i], gg += g * g, joint += with_decay * with_decay;
    }
    const bool zero = vv == 0 || (o.joint_norm ? joint : gg) == 0;
    if (zero && !o.joint_norm) return {.decays = false};
    const double sum =
        o.joint_norm ? std::sqrt(joint) : std::sqrt(gg) + segment.weight_decay * std::sqrt(vv) + o.epsilon;
    const double local = zero ? o.epsilon : o.trust * std::sqrt(vv) / sum;
    return {.factor = o.larc == Larc::clip ? std::min(local / lr, 1.0) : local};
  }
  void lamb(const UpdateSegment& segment, const Array& grads, double scale, double lr, int t) {
    const double b1 = o.beta1, b2 = o.beta2;
    std::vector<double> u;
    double vv = 0, uu = 0;
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      double g = scale * grads[i];
      if (o.clip_value > 0) g = std::clamp(g, -double{o.clip_value}, double{o.clip_value});
      m[i] = b1 * m[i] + (1 - b1) * g;
      s[i] = b2 * s[i] + (1 - b2) * g * g;
      u.push_back(m[i] / (1 - std::pow(b1, t)) / (std::sqrt(s[i] / (1 - std::pow(b2, t))) + o.epsilon) +
                  segment.weight_decay * v[i]);
      vv += v[i] * v[i], uu += u.back() * u.back();
    }
    const double ratio = segment.parameter < 0 || vv == 0 || uu == 0 ? 1 : std::sqrt(vv / uu);
    for (int64_t i = segment.begin; i < segment.end; ++i)
      v[i] -= lr * ratio * u[static_cast<size_t>(i - segment.begin)];
  }
  double lars_ratio(const UpdateSegment& segment, const Array& grads, double scale) const {
    double vv = 0, gg = 0;
    for (int64_t i = segment.begin; i < segment.end; ++i) vv += v[i] * v[i], gg += scale * scale * grads[i] * grads[i];
    if (vv == 0 || gg == 0) return 1;
    return o.trust * std::sqrt(vv) / (std::sqrt(gg) + segment.weight_decay * std::sqrt(vv) + o.epsilon);
  }
  void element(int64_t i, double g, double lr, double decay, int t) {
    const double mu = o.momentum, b1 = o.beta1, b2 = o.beta2;
    const auto adam = [&](double gradient) {
      m[i] = b1 * m[i] + (1 - b1) * gradient;
      s[i] = b2 * s[i] + (1 - b2) * gradient * gradient;
      const double m_hat = m[i] / (1 - std::pow(b1, t)), s_hat = s[i] / (1 - std::pow(b2, t));
      return lr * m_hat / (std::sqrt(s_hat) + o.epsilon);
    };
    const double with_decay = g + decay * v[i];
    switch (o.rule) {
      case UpdateRule::sgd:
        v[i] -= lr * with_decay;
        break;
      case UpdateRule::momentum:
        m[i] = mu * m[i] + with_decay;
        v[i] -= lr * m[i];
        break;
      case UpdateRule::nesterov:
        m[i] = mu * m[i] + with_decay;
        v[i] -= lr * (with_decay + mu * m[i]);
        break;
      case UpdateRule::adamw:
        v[i] = v[i] * (1 - lr * decay) - adam(g);
        break;
      case UpdateRule::adam:
        v[i] -= adam(with_decay);
        break;
      case UpdateRule::rmsprop:
        s[i] = o.rho * s[i] + (1 - double{o.rho}) * with_decay * with_decay;
        m[i] = mu * m[i] + lr * with_decay / std::sqrt(s[i] + o.epsilon);
        v[i] -= m[i];
        break;
      case UpdateRule::lars:
        m[i] = mu * m[i] + lr * with_decay;
        v[i] -= m[i];
        break;
      case UpdateRule::lamb:
        FAIL() << "a rule of whole parameters";
    }
  }
};

}  // namespace dtrain::update_tests
