// Update rules.
#include "apps/cli/options/optimizer.h"

namespace dtrain::cli {

void OptimizerFlags::declare(FlagSet& flags) {
  flags.group("Optimiser");
  flags
      .add_choice("optimizer", optimizer, {"sgd", "momentum", "heavy_ball", "rmsprop", "adam", "adamw", "lars"},
                  "sgd is plain, momentum is Nesterov's, heavy_ball is momentum without his step")
      .identity("optimizer");
  flags.add("momentum", momentum, "momentum coefficient of momentum, heavy_ball and lars", kShare);
  flags.add("rmsprop_decay", rmsprop_decay, "decay of rmsprop's mean of squared gradients", kShare);
  flags.add("rmsprop_momentum", rmsprop_momentum, "momentum coefficient of rmsprop", kShare);
  flags.add("rmsprop_epsilon", rmsprop_epsilon, "epsilon in rmsprop's denominator", kNotNegative);
  flags.add("adam_beta1", adam_beta1, "decay of the first moment in adam and adamw", kBelowOne);
  flags.add("adam_beta2", adam_beta2, "decay of the second moment in adam and adamw", kBelowOne);
  flags.add("adam_epsilon", adam_epsilon, "epsilon in the denominator of adam and adamw", kNotNegative);
  flags.add("lars_trust", lars_trust, "trust coefficient of lars", kNotNegative);
  flags.add("gradient_clip", gradient_clip, "limit each element of the gradient to +-x", kNotNegative);
  flags.add("gradient_clip_norm", gradient_clip_norm, "limit the norm of the whole gradient; 0: no limit",
            kNotNegative);
  flags.add("weight_decay", weight_decay, "L2 penalty on the parameters that weight_decay_on names", kNotNegative)
      .setting("weight decay");
  flags.add_choice("weight_decay_on", weight_decay_on, {"weights", "all"},
                   "weights: all parameters but biases and those of batch norm");
}

void OptimizerFlags::check(const FlagSet&) const {
  const bool clips_values = gradient_clip.value_or(0) > 0;
  refuse({
      {clips_values && gradient_clip_norm > 0, "--gradient_clip and --gradient_clip_norm: at most one may be given"},
      {clips_values && optimizer == "lars", "--gradient_clip and --optimizer=lars: at most one may be given"},
  });
}

OptimizerOptions OptimizerFlags::options() const {
  OptimizerOptions options;
  UpdateOptions& update = options.update;
  options.weight_decay = static_cast<float>(weight_decay);
  options.decays_all = weight_decay_on == "all";
  update.momentum = static_cast<float>(optimizer == "rmsprop" ? rmsprop_momentum : momentum);
  update.epsilon = static_cast<float>(optimizer == "rmsprop" ? rmsprop_epsilon : adam_epsilon);
  update.rho = static_cast<float>(rmsprop_decay);
  update.beta1 = static_cast<float>(adam_beta1);
  update.beta2 = static_cast<float>(adam_beta2);
  update.trust = static_cast<float>(lars_trust);
  update.clip_value = static_cast<float>(gradient_clip.value_or(0));
  update.clip_norm = static_cast<float>(gradient_clip_norm);
  update.rule = optimizer == "sgd"          ? UpdateRule::sgd
                : optimizer == "momentum"   ? UpdateRule::nesterov
                : optimizer == "heavy_ball" ? UpdateRule::momentum
                : optimizer == "rmsprop"    ? UpdateRule::rmsprop
                : optimizer == "adam"       ? UpdateRule::adam
                : optimizer == "adamw"      ? UpdateRule::adamw
                                            : UpdateRule::lars;
  return options;
}

}  // namespace dtrain::cli
