// Update factors and their dependence on norms, shared by the CPU and CUDA kernels.
#pragma once

#include "libdtrain/ops/update_math.h"

namespace dtrain {

// Norm of a tensor to be multiplied by `scale`.
DT_HD inline float norm_of(double squares, float scale) {
  return static_cast<float>(std::abs(scale) * std::sqrt(squares));
}

// Factor of clipping by norm; `norm`: before clipping.
DT_HD inline float norm_clip(const UpdateOptions& o, float norm) {
  return o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1.0f;
}

// Weight of update `t` in the moving average.
DT_HD inline float averaged_share(const UpdateOptions& o, double t) {
  const auto decay = static_cast<double>(o.average_decay);
  const double most = o.average_warmup ? (1 + t) / (10 + t) : 1;
  return static_cast<float>(1 - (most < decay ? most : decay));
}

// `norm`: global norm of the scaled gradients, before clipping.
DT_HD inline UpdateFactors update_factors(const UpdateOptions& o, const StepScalars& s, float norm) {
  const auto t = static_cast<double>(s.step + 1 - s.skipped);  // updates, including this one
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

// LARS: trust ratio, from the norms of values and clipped gradients.
DT_HD inline float lars_ratio(const UpdateOptions& o, float decay, float value_norm, float gradient_norm) {
  if (value_norm == 0 || gradient_norm == 0) return 1;
  return o.trust * value_norm / (gradient_norm + decay * value_norm + o.epsilon);
}

// LAMB: trust ratio, from the norms of values and update directions.
DT_HD inline float lamb_ratio(float value_norm, float direction_norm) {
  return value_norm == 0 || direction_norm == 0 ? 1 : value_norm / direction_norm;
}

// LARC: rescales gradient and decay.
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

// Sums over the elements of a tensor: squares of gradients, values and LAMB directions; products of gradients and
// values.
struct UpdateSums {
  double gradient = 0, value = 0, direction = 0, product = 0;
};

// Second norm of a parameter besides |v|. `clip`: clipping factor of gradients.
DT_HD inline float second_norm(const UpdateOptions& o, const UpdateSums& sums, float scale, float clip, float decay) {
  if (o.larc == Larc::none || !o.joint_norm) return norm_of(sums.gradient, scale);
  const double a = static_cast<double>(scale) * static_cast<double>(clip), d = static_cast<double>(decay);
  const double squares = a * a * sums.gradient + 2 * a * d * sums.product + d * d * sums.value;
  return squares > 0 ? norm_of(squares, 1) : 0;
}

// Factors of one piece. `norms`: as written by update().
DT_HD inline UpdateFactors piece_factors(const UpdateOptions& o, const UpdateFactors& step, const UpdatePiece& piece,
                                         const float* norms) {
  UpdateFactors f = step;
  f.decay = piece.weight_decay;
  f.rate *= piece.rate;  // exact where it is 1
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
