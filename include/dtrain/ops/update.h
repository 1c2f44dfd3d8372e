// Optimiser updates over flat arenas: one fused pass over values, gradients and state. No gradients.
#pragma once

#include <tuple>
#include <vector>

#include "dtrain/core/context.h"

namespace dtrain {

// Range of the arena with common hyperparameters: neighbouring parameters with equal factors share one.
struct UpdateSegment {
  int64_t begin = 0, end = 0;  // elements
  float weight_decay = 0;
  int64_t parameter = -1;  // for layer-wise adaptive rates: the parameter whose norms count, all of it; -1: none
  float rate = 1;          // factor of the learning rate
};

enum class UpdateRule {
  sgd,       // v -= lr g
  momentum,  // m = mu m + g;  v -= lr m                 (as in torch and TensorFlow)
  nesterov,  // m = mu m + g;  v -= lr (g + mu m)
  adamw,     // decoupled decay (Loshchilov and Hutter 2019), torch's bias correction
  adam,      // L2 decay, part of the gradient
  rmsprop,   // TensorFlow's: s = rho s + (1 - rho) g^2;  m = mu m + lr g / sqrt(s + eps);  v -= m
  lars,      // You, Gitman and Ginsburg 2017: m = mu m + lr * r (g + wd v);  v -= m,
             // with r = trust * |v| / (|g| + wd |v| + eps), or 1 where |v| or |g| is 0
  lamb,      // You et al. 2020: v -= lr * r u, with u = m^ / (sqrt(s^) + eps) + wd v of Adam's corrected moments,
             // and r = |v| / |u|, or 1 where |v| or |u| is 0
};

// LARC of NVIDIA Apex, for sgd, momentum and nesterov: rescales a parameter's gradient, including decay. The local rate
// is q = trust * |v| / (|g| + wd |v| + eps).
enum class Larc {
  none,
  clip,   // by min(q / lr, 1)
  scale,  // by q
};

struct UpdateOptions {
  UpdateRule rule = UpdateRule::momentum;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float rho = 0.9f;
  float trust = 0.001f;  // of LARS and LARC
  Larc larc = Larc::none;
  // LARC with q = trust * |v| / |g + wd v|: decay is part of the loss, as in the ResNet of AWS's deep-learning-models.
  // If |v| or that norm is 0, q is eps. Without joint_norm, if |v| or |g| is 0, the gradient is used unscaled and
  // without decay, as in Apex.
  bool joint_norm = false;
  float clip_value = 0;  // > 0: clips each element of the scaled gradient to +-this; not with clip_norm, LARS, LARC
  float clip_norm = 0;   // > 0: scales the whole gradient down to this norm
  // Exponential moving average a += (1 - d) (v - a), d = min(average_decay, (1 + t) / (10 + t)) at update t = 1, 2 ...,
  // as TensorFlow's ExponentialMovingAverage with num_updates.
  float average_decay = 0.9999f;
  bool average_warmup = true;
};

// Whether learning rates adapt to parameter norms.
constexpr bool adapts(const UpdateOptions& o) {
  return o.rule == UpdateRule::lars || o.rule == UpdateRule::lamb || o.larc != Larc::none;
}

// State arenas of a rule: none, m, or m and s.
constexpr int state_arenas(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::sgd:
      return 0;
    case UpdateRule::momentum:
    case UpdateRule::nesterov:
    case UpdateRule::lars:
      return 1;
    case UpdateRule::adamw:
    case UpdateRule::adam:
    case UpdateRule::rmsprop:
    case UpdateRule::lamb:
      return 2;
  }
  return 0;
}

// Unit of work of a CPU thread or a GPU block.
struct UpdatePiece {
  int64_t begin = 0;
  int32_t count = 0;
  int32_t parameter = -1;
  float weight_decay = 0, rate = 1;
};

// Pieces of one parameter with an adaptive rate.
struct UpdateRun {
  int32_t first_piece = 0, pieces = 0, parameter = 0;
};

// Segments cut into pieces, with a copy in device memory: an update needs nothing from the host. Cuts are fixed, so
// that reductions over pieces do not depend on the number of threads.
class UpdatePlan {
 public:
  static constexpr int kPiece = 4096;

  UpdatePlan(Context& context, std::vector<UpdateSegment> segments);
  const std::vector<UpdateSegment>& segments() const { return segments_; }
  const std::vector<UpdatePiece>& pieces() const { return pieces_; }
  const std::vector<UpdateRun>& runs() const { return runs_; }
  // Device copies of the arrays above; undefined on a CPU.
  const Tensor& device_pieces() const { return device_pieces_; }
  const Tensor& device_runs() const { return device_runs_; }
  auto tensors() const { return std::tie(device_pieces_, device_runs_); }

 private:
  std::vector<UpdateSegment> segments_;
  std::vector<UpdatePiece> pieces_;
  std::vector<UpdateRun> runs_;
  Tensor device_pieces_, device_runs_;
};

// Arenas have equal shapes, f32 except `copy`; `state` has state_arenas(rule) of them. `copy`, optional: bf16 or f16
// copy of the updated values. `average`, optional: their moving average.
struct UpdateArenas {
  Tensor values, grads;
  std::vector<Tensor> state{};
  Tensor copy{}, average{};

  auto tensors() const { return std::tie(values, grads, state, copy, average); }
};

// g = gradient_scale / loss_scale * grads, clipped, plus weight_decay * v (except adamw); rate, scales and step come
// from the context's StepScalars. If a gradient in a segment is non-finite, all arenas stay unchanged: a dynamic loss
// scale is halved, otherwise no update is applied from then on (see StepState). `norms` [1 + 2 * parameters] f32:
// global norm of the scaled gradients before clipping, then |v| and |g| of each parameter with an adaptive rate; |g +
// wd v| after clipping for joint_norm, |u| for LAMB. Throws Error for mismatched shapes or incompatible options.
void update(Context& context, const UpdateOptions& options, const UpdatePlan& plan, const UpdateArenas& arenas,
            const Tensor& norms);

// L2 loss of weight decay, for reports: loss [1] f32 = sum over segments of weight_decay / 2 * sum of v^2, accumulated
// in double in an order that depends on the plan only. Throws Error if `values` does not cover all segments.
void l2_loss(Context& context, const UpdatePlan& plan, const Tensor& values, const Tensor& loss);

}  // namespace dtrain
