// The optimiser's arithmetic over flat arenas: one pass over values, gradients and state. No gradients of its own.
#pragma once

#include <vector>

#include "libdtrain/core/context.h"

namespace dtrain {

// A run of the arena with one set of factors: neighbouring parameters with equal factors share one.
struct UpdateSegment {
  int64_t begin = 0, end = 0;  // elements
  float weight_decay = 0;
  int64_t parameter = -1;  // LARS: the parameter, all of it, whose norms scale the rate; -1: the rate itself
};

enum class UpdateRule {
  sgd,       // v -= lr g
  momentum,  // m = mu m + g;  v -= lr m                 (torch's and TensorFlow's)
  nesterov,  // m = mu m + g;  v -= lr (g + mu m)
  adamw,     // decoupled decay (Loshchilov and Hutter 2019), torch's bias correction
  adam,      // decay is L2, inside the moments
  rmsprop,   // TensorFlow's: s = rho s + (1 - rho) g^2;  m = mu m + lr g / sqrt(s + eps);  v -= m
  lars,      // You, Gitman and Ginsburg 2017: m = mu m + lr * r (g + wd v);  v -= m,
             // with r = trust * |v| / (|g| + wd |v| + eps), or 1 where |v| or |g| is 0
};

struct UpdateOptions {
  UpdateRule rule = UpdateRule::momentum;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float rho = 0.9f;
  float trust = 0.001f;
  float clip_value = 0;  // > 0: limits each element of the scaled gradient to +-this; not with clip_norm, not in LARS
  float clip_norm = 0;   // > 0: the whole gradient is scaled down to this norm
};

// Arenas of state that a rule needs: none, m, or m and s, in this order.
int state_arenas(UpdateRule rule);

// What weight decay adds to the loss, for reports: loss [1] f32 = sum over segments of weight_decay / 2 * sum of v^2,
// added up in double in an order that depends on the segments alone.
void l2_loss(Context& context, const std::vector<UpdateSegment>& segments, const Tensor& values, const Tensor& loss);

// g is gradient_scale / loss_scale * grads, clipped, plus weight_decay * v except for adamw; rate, scales and step are
// those of the context's StepScalars. If any gradient of a segment is not finite, values and state are left as they
// are, and the StepState tells what follows: under a dynamic loss scale it is halved, otherwise nothing is updated from
// then on. `norms` [1 + 2 * parameters] f32: the norm of all scaled gradients before clipping, then, for LARS, |v| and
// |g| of each parameter.
void update(Context& context, const UpdateOptions& options, const std::vector<UpdateSegment>& segments,
            const Tensor& values, const Tensor& grads, const std::vector<Tensor>& state, const Tensor& norms);

namespace cpu {
void l2_loss(Context&, const std::vector<UpdateSegment>&, const Tensor& values, const Tensor& loss);
void update(Context&, const UpdateOptions&, const std::vector<UpdateSegment>&, const Tensor& values,
            const Tensor& grads, const std::vector<Tensor>& state, const Tensor& norms);
}  // namespace cpu

}  // namespace dtrain
