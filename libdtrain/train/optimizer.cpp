#include "dtrain/train/optimizer.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace dtrain {
namespace {

ParameterStore& trainable(ParameterStore& store) {
  DT_CHECK(store.allocated(), "Optimizer: its ParameterStore has no arenas yet; expected allocate() before");
  DT_CHECK(store.has_gradients(), "Optimizer: its ParameterStore was allocated without gradients");
  return store;
}

// Throws Error for invalid hyperparameters.
OptimizerOptions checked(const OptimizerOptions& o) {
  constexpr float kAny = std::numeric_limits<float>::max();
  const auto require = [](const char* name, float value, float most) {
    DT_CHECK(value >= 0 && value <= most, "Optimizer: ", name, " is ", value, ", expected ",
             most == 1 ? "0 to 1" : "a finite number that is not negative");
  };
  const UpdateOptions& u = o.update;
  require("weight_decay", o.weight_decay, kAny);
  for (const auto& [name, value] :
       {std::pair("momentum", u.momentum), std::pair("beta1", u.beta1), std::pair("beta2", u.beta2),
        std::pair("rho", u.rho), std::pair("average_decay", u.average_decay)})
    require(name, value, 1);
  for (const auto& [name, value] : {std::pair("epsilon", u.epsilon), std::pair("trust", u.trust),
                                    std::pair("clip_value", u.clip_value), std::pair("clip_norm", u.clip_norm)})
    require(name, value, kAny);
  return o;
}

// Ranges of trainable parameters with equal factors, including the padding between them.
std::vector<UpdateSegment> segments_of(const ParameterStore& store, const OptimizerOptions& options) {
  std::vector<UpdateSegment> segments;
  const bool larc = options.update.larc != Larc::none;
  int64_t next = 0;  // offset at which a parameter continues the last segment
  for (const Parameter& parameter : store.parameters()) {
    const ParameterOptions& own = parameter.options();
    if (own.frozen) continue;
    const UpdateSegment segment{
        .begin = parameter.offset,
        .end = parameter.offset + parameter.shape.count(),
        .weight_decay = own.decay || options.decays_all ? own.multipliers.weight_decay * options.weight_decay : 0,
        .parameter = adapts(options.update) && (own.decay || larc) ? parameter.index : -1,
        .rate = own.multipliers.rate};
    UpdateSegment* last = segments.empty() ? nullptr : &segments.back();
    if (last && next == segment.begin && last->weight_decay == segment.weight_decay && last->rate == segment.rate &&
        last->parameter < 0 && segment.parameter < 0)
      last->end = segment.end;
    else
      segments.push_back(segment);
    next = static_cast<int64_t>(align_up(static_cast<size_t>(segment.end) * sizeof(float)) / sizeof(float));
  }
  return segments;
}

std::string describe_rule(const UpdateOptions& o) {
  switch (o.rule) {
    case UpdateRule::sgd:
      return "SGD";
    case UpdateRule::momentum:
      return fmt::format("momentum {:g}", o.momentum);
    case UpdateRule::nesterov:
      return fmt::format("momentum {:g} (Nesterov)", o.momentum);
    case UpdateRule::adamw:
      return fmt::format("AdamW (beta1 {:g}, beta2 {:g}, epsilon {:g})", o.beta1, o.beta2, o.epsilon);
    case UpdateRule::adam:
      return fmt::format("Adam (beta1 {:g}, beta2 {:g}, epsilon {:g})", o.beta1, o.beta2, o.epsilon);
    case UpdateRule::rmsprop:
      return fmt::format("RMSProp (decay {:g}, momentum {:g}, epsilon {:g})", o.rho, o.momentum, o.epsilon);
    case UpdateRule::lars:
      return fmt::format("LARS (momentum {:g}, trust {:g}, epsilon {:g})", o.momentum, o.trust, o.epsilon);
    case UpdateRule::lamb:
      return fmt::format("LAMB (beta1 {:g}, beta2 {:g}, epsilon {:g})", o.beta1, o.beta2, o.epsilon);
  }
  return "?";
}

std::string describe_larc(const UpdateOptions& o) {
  if (o.larc == Larc::none) return "";
  return fmt::format(", LARC ({}{}, trust {:g}, epsilon {:g})", o.larc == Larc::clip ? "clip" : "scale",
                     o.joint_norm ? ", joint norm" : "", o.trust, o.epsilon);
}

}  // namespace

Optimizer::Optimizer(ParameterStore& store, const OptimizerOptions& options)
    : store_(trainable(store),
             "an Optimizer is used after its ParameterStore has been destroyed; expected one that "
             "outlives it"),
      options_(checked(options)),
      plan_(store.context(), segments_of(store, options)),
      planned_version_(store.layout_version()) {
  const bool fresh = store.optimizer_states() == 0;
  for (int i = 0; i < state_arenas(options.update.rule); ++i) state_.push_back(store.optimizer_state(i));
  Context& context = store.context();
  if (fresh && options.update.rule == UpdateRule::rmsprop) {
    // TensorFlow initialises mean squares with 1, which damps the first steps.
    const std::vector<float> ones(static_cast<size_t>(state_[1].count()), 1.0f);
    context.upload(ones.data(), state_[1]);
  }
  norms_ = context.zeros({1 + 2 * static_cast<int64_t>(store.parameters().size())});
  l2_loss_ = context.zeros({1});
  if (options.averages) average_ = context.empty(store.values().shape());
  restart_average();
}

const UpdatePlan& Optimizer::plan() {
  if (planned_version_ == store_->layout_version()) return plan_;
  DT_CHECK(
      !store_->context().capturing(),
      "Optimizer: frozen parameters or multipliers have changed since the last step, and this one is being captured; "
      "expected an eager step in between");
  plan_ = UpdatePlan(store_->context(), segments_of(*store_, options_));
  planned_version_ = store_->layout_version();
  return plan_;
}

void Optimizer::step() {
  const UpdateArenas arenas{store_->values(), store_->grads(), state_, store_->compute_values(), average_};
  update(store_->context(), options_.update, plan(), arenas, norms_);
  store_->refresh_padded();
  store_->touch();
}

void Optimizer::restart_average() {
  if (average_) store_->context().copy(store_->values(), average_);
}

float Optimizer::gradient_norm() const {
  float norm = 0;
  store_->context().download(norms_.slice(0, 1), &norm, "gradient_norm");
  return norm;
}

float Optimizer::l2_loss() {
  float loss = 0;
  store_->context().download(queue_l2_loss(), &loss, "l2_loss");
  return loss;
}

const Tensor& Optimizer::queue_l2_loss() {
  dtrain::l2_loss(store_->context(), plan(), store_->values(), l2_loss_);
  return l2_loss_;
}

std::string Optimizer::describe() const {
  std::string text = describe_rule(options_.update) + describe_larc(options_.update);
  if (options_.weight_decay > 0)
    text += fmt::format(", weight decay {:g}{}", options_.weight_decay,
                        options_.decays_all ? "" : " except on biases and norms");
  if (options_.update.clip_value > 0) text += fmt::format(", gradients clipped to +-{:g}", options_.update.clip_value);
  if (options_.update.clip_norm > 0) text += fmt::format(", gradient norm clipped to {:g}", options_.update.clip_norm);
  if (options_.averages)
    text += fmt::format(", parameters averaged with decay {:g}{}", options_.update.average_decay,
                        options_.update.average_warmup ? " after a warm-up" : "");
  return text;
}

}  // namespace dtrain
