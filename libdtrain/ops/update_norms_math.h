// The factors of an update, and how norms change them, shared by the CPU and the CUDA arm.
#pragma once

#include "libdtrain/ops/update_math.h"

namespace dtrain {

// For a tensor that is to be multiplied by `scale`.
DT_HD inline float norm_of(double squares, float scale) {
  return static_cast<float>(std::abs(scale) * std::sqrt(squares));
}

// What clipping by norm multiplies the gradient by, whose norm before it is `norm`.
DT_HD inline float norm_clip(const UpdateOptions& o, float norm) {
  return o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1.0f;
}

// The share of update `t` in the moving average.
DT_HD inline float averaged_share(const UpdateOptions& o, double t) {
  const auto decay = static_cast<double>(o.average_decay);
  const double most = o.average_warmup ? (1 + t) / (10 + t) : 1;
  return static_cast<float>(1 - (most < decay ? most : decay));
}

// `norm` is that of all scaled gradients, before clipping.
DT_HD inline UpdateFactors update_factors(const UpdateOptions& o, const StepScalars& s, float norm) {
  const auto t = static_cast<double>(s.step + 1 - s.skipped);  // updates, this one included
  return {s.learning_rate,
          0,
          unscale(s) * norm_clip(o, norm),
          o.clip_value > 0 ? o.clip_value : INFINITY,
          o.momentum,
          o.beta1,
          o.beta2,
          o.rho,
          o.epsilon,
          static_cast<float>(1 / (1 - std::pow(static_cast<double>(o.beta1), t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(static_cast<double>(o.beta2), t))),
          averaged_share(o, t)};
}

// LARS: what the rate of a parameter is multiplied by. Norms of the values and of the clipped gradient.
DT_HD inline float lars_ratio(const UpdateOptions& o, float decay, float value_norm, float gradient_norm) {
  if (value_norm == 0 || gradient_norm == 0) return 1;
  return o.trust * value_norm / (gradient_norm + decay * value_norm + o.epsilon);
}

// LAMB: the same, by the norms of the values and of what they would change by at rate 1.
DT_HD inline float lamb_ratio(float value_norm, float direction_norm) {
  return value_norm == 0 || direction_norm == 0 ? 1 : value_norm / direction_norm;
}

// LARC changes what the rule sees of the gradient and the decay.
DT_HD inline void apply_larc(const UpdateOptions& o, float value_norm, float gradient_norm, UpdateFactors& f) {
  const bool zero = value_norm == 0 || gradient_norm == 0;
  if (zero && !o.joint_norm) {
    f.decay = 0;
    return;
  }
  const float sum = o.joint_norm ? gradient_norm : gradient_norm + f.decay * value_norm + o.epsilon;
  const float local = zero ? o.epsilon : o.trust * value_norm / sum;
  const float factor = o.larc == Larc::scale ? local : local < f.rate ? local / f.rate : 1.0f;
  f.gradient *= factor;
  f.decay *= factor;
}

// Sums over the elements of a tensor: squares of gradients, of values and of what LAMB makes of them, and products of
// gradients and values.
struct UpdateSums {
  double gradient = 0, value = 0, direction = 0, product = 0;
};

// The norm that stands beside that of the values of a parameter. `clip`: what clipping multiplies gradients by.
DT_HD inline float second_norm(const UpdateOptions& o, const UpdateSums& sums, float scale, float clip, float decay) {
  if (o.larc == Larc::none || !o.joint_norm) return norm_of(sums.gradient, scale);
  const double a = static_cast<double>(scale) * static_cast<double>(clip), d = static_cast<double>(decay);
  const double squares = a * a * sums.gradient + 2 * a * d * sums.product + d * d * sums.value;
  return squares > 0 ? norm_of(squares, 1) : 0;
}

// Those of one piece. `norms`: as update() fills them.
DT_HD inline UpdateFactors piece_factors(const UpdateOptions& o, const UpdateFactors& step, const UpdatePiece& piece,
                                         const float* norms) {
  UpdateFactors f = step;
  f.decay = piece.weight_decay;
  f.rate *= piece.rate;  // by 1 in general, which is exact
  if (piece.parameter < 0) return f;
  const float* norm = norms + 1 + 2 * piece.parameter;
  const float clip = norm_clip(o, norms[0]);
  if (o.rule == UpdateRule::lars)
    f.rate *= lars_ratio(o, f.decay, norm[0], clip * norm[1]);
  else if (o.rule == UpdateRule::lamb)
    f.rate *= lamb_ratio(norm[0], norm[1]);
  else if (o.larc != Larc::none)
    apply_larc(o, norm[0], o.joint_norm ? norm[1] : clip * norm[1], f);
  return f;
}

}  // namespace dtrain
