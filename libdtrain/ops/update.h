// The optimiser's arithmetic over flat arenas: one pass over values, gradients and state. No gradients of its own.
#pragma once

#include <vector>

#include "libdtrain/core/context.h"

namespace dtrain {

// A run of the arena with one set of factors: neighbouring parameters with equal factors share one.
struct UpdateSegment {
  int64_t begin = 0, end = 0;  // elements
  float weight_decay = 0;
  int64_t parameter = -1;  // LARS: the parameter whose norms scale the rate; one segment per parameter then
};

enum class UpdateRule {
  sgd,       // v -= lr g
  momentum,  // m = mu m + g;  v -= lr m                 (torch's and TensorFlow's)
  nesterov,  // m = mu m + g;  v -= lr (g + mu m)
  adamw,     // decoupled decay (Loshchilov and Hutter 2019), torch's bias correction
  adam,      // decay is L2, inside the moments
  rmsprop,   // TensorFlow's: s = rho s + (1 - rho) g^2;  m = mu m + lr g / sqrt(s + eps);  v -= m
  lars,      // You, Gitman and Ginsburg 2017: momentum with rate lr * trust * |v| / (|g| + wd |v| + eps)
};

struct UpdateOptions {
  UpdateRule rule = UpdateRule::momentum;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float rho = 0.9f;
  float trust = 0.001f;
  float clip_value = 0;  // > 0: each gradient element is limited to +-clip_value, after scaling
  float clip_norm = 0;   // > 0: the whole gradient is scaled down to this norm
};

// Arenas of state that a rule needs.
int state_arenas(UpdateRule rule);

// g is gradient_scale * grads (StepScalars), clipped, plus weight_decay * v except for adamw. The learning rate and the
// step are read from the context's StepScalars. If any gradient is not finite, StepScalars::finite is cleared; once it
// is clear, nothing is written. `norms` [1 + 2 * parameters] f32 is scratch that holds the global gradient norm in
// front afterwards.
void update(Context& context, const UpdateOptions& options, const std::vector<UpdateSegment>& segments,
            const Tensor& values, const Tensor& grads, const std::vector<Tensor>& state, const Tensor& norms);

namespace cpu {
void update(Context&, const UpdateOptions&, const std::vector<UpdateSegment>&, const Tensor& values,
            const Tensor& grads, const std::vector<Tensor>& state, const Tensor& norms);
}  // namespace cpu

}  // namespace dtrain
