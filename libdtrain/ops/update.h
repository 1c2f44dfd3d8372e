// The optimiser's arithmetic over flat arenas: one pass over values, gradients and state. No gradients of its own.
#pragma once

#include <tuple>
#include <vector>

#include "libdtrain/core/context.h"

namespace dtrain {

// A run of the arena with one set of factors: neighbouring parameters with equal factors share one.
struct UpdateSegment {
  int64_t begin = 0, end = 0;  // elements
  float weight_decay = 0;
  int64_t parameter = -1;  // where rates adapt: the parameter, all of it, whose norms count; -1: the rate itself
  float rate = 1;          // multiplies the learning rate
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
  lamb,      // You et al. 2020: v -= lr * r u, with u = m^ / (sqrt(s^) + eps) + wd v of Adam's corrected moments,
             // and r = |v| / |u|, or 1 where |v| or |u| is 0
};

// NVIDIA Apex's LARC, for sgd, momentum and nesterov: what the gradient of a parameter, its decay included, is
// multiplied by first. The local rate is q = trust * |v| / (|g| + wd |v| + eps).
enum class Larc {
  none,
  clip,   // by q / lr, and by no more than 1: the smaller rate counts
  scale,  // by q
};

struct UpdateOptions {
  UpdateRule rule = UpdateRule::momentum;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float rho = 0.9f;
  float trust = 0.001f;  // of lars and LARC
  Larc larc = Larc::none;
  // LARC: q = trust * |v| / |g + wd v|, for which decay is a part of the loss, as in the ResNet of AWS's
  // deep-learning-models. Where |v| or that norm is 0, q is eps. Without it, where |v| or |g| is 0, the gradient is
  // taken as it is and without decay, as in Apex.
  bool joint_norm = false;
  float clip_value = 0;  // > 0: limits each element of the scaled gradient to +-this; not with clip_norm, LARS, LARC
  float clip_norm = 0;   // > 0: the whole gradient is scaled down to this norm
  // Of the moving average a += (1 - d) (v - a): d is this decay, in a warm-up no more than (1 + t) / (10 + t) at update
  // t = 1, 2 ..., as that of TensorFlow's ExponentialMovingAverage with num_updates.
  float average_decay = 0.9999f;
  bool average_warmup = true;
};

// Whether the rates of parameters adapt to their norms.
constexpr bool adapts(const UpdateOptions& o) {
  return o.rule == UpdateRule::lars || o.rule == UpdateRule::lamb || o.larc != Larc::none;
}

// Arenas of state that a rule needs: none, m, or m and s, in this order.
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

// What one thread of the CPU or one block of a GPU works on at a time.
struct UpdatePiece {
  int64_t begin = 0;
  int32_t count = 0;
  int32_t parameter = -1;
  float weight_decay = 0, rate = 1;
};

// The pieces of one parameter whose rate adapts.
struct UpdateRun {
  int32_t first_piece = 0, pieces = 0, parameter = 0;
};

// Segments cut into pieces, with a copy in device memory, so that an update needs nothing from the host. The cut is at
// fixed places: sums taken piece by piece do not depend on how many threads there are.
class UpdatePlan {
 public:
  static constexpr int kPiece = 4096;

  UpdatePlan(Context& context, std::vector<UpdateSegment> segments);
  const std::vector<UpdateSegment>& segments() const { return segments_; }
  const std::vector<UpdatePiece>& pieces() const { return pieces_; }
  const std::vector<UpdateRun>& runs() const { return runs_; }
  // Where the arrays above are on a GPU; undefined on the CPU.
  const Tensor& device_pieces() const { return device_pieces_; }
  const Tensor& device_runs() const { return device_runs_; }
  auto tensors() const { return std::tie(device_pieces_, device_runs_); }

 private:
  std::vector<UpdateSegment> segments_;
  std::vector<UpdatePiece> pieces_;
  std::vector<UpdateRun> runs_;
  Tensor device_pieces_, device_runs_;
};

// The arenas have equal shapes, and all but `copy` are f32; `state` has as many as state_arenas(rule). `copy`, where
// defined, is bf16 or f16: the updated values rounded to it. `average`, where defined, is their moving average.
struct UpdateArenas {
  Tensor values, grads;
  std::vector<Tensor> state{};
  Tensor copy{}, average{};

  auto tensors() const { return std::tie(values, grads, state, copy, average); }
};

// g is gradient_scale / loss_scale * grads, clipped, plus weight_decay * v except for adamw; rate, scales and step are
// those of the context's StepScalars. If any gradient of a segment is not finite, all arenas are left as they are, and
// the StepState tells what follows: under a dynamic loss scale it is halved, otherwise nothing is updated from then on.
// `norms` [1 + 2 * parameters] f32: the norm of all scaled gradients before clipping, then |v| and |g| of each
// parameter whose rate adapts; with joint_norm |g + wd v| after clipping in place of |g|, for LAMB |u|. Throws Error
// where shapes do not fit, or options do not go together.
void update(Context& context, const UpdateOptions& options, const UpdatePlan& plan, const UpdateArenas& arenas,
            const Tensor& norms);

// What weight decay adds to the loss, for reports: loss [1] f32 = sum over segments of weight_decay / 2 * sum of v^2,
// added up in double in an order that depends on the plan alone. Throws Error where `values` do not hold all segments.
void l2_loss(Context& context, const UpdatePlan& plan, const Tensor& values, const Tensor& loss);

namespace cpu {
void l2_loss(Context&, const UpdatePlan&, const Tensor& values, const Tensor& loss);
void update(Context&, const UpdateOptions&, const UpdatePlan&, const UpdateArenas&, const Tensor& norms);
}  // namespace cpu

namespace cuda {
decltype(cpu::l2_loss) l2_loss;
decltype(cpu::update) update;
}  // namespace cuda

}  // namespace dtrain
