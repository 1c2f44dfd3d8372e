// Update rules.
#include "apps/cli/options/optimizer.h"

namespace dtrain::cli {

void OptimizerFlags::declare(FlagSet& flags) {
  flags.group("Optimiser");
  flags
      .add_choice("optimizer", optimizer, {"sgd", "momentum", "heavy_ball", "rmsprop", "adam", "adamw", "lars", "lamb"},
                  "sgd: without momentum; momentum: Nesterov momentum; heavy_ball: classical momentum")
      .identity("optimizer");
  flags.add("momentum", momentum, "momentum coefficient of momentum, heavy_ball and lars", kShare);
  flags.add("rmsprop_decay", rmsprop_decay, "decay of rmsprop's moving average of squared gradients", kShare);
  flags.add("rmsprop_momentum", rmsprop_momentum, "momentum coefficient of rmsprop", kShare);
  flags.add("rmsprop_epsilon", rmsprop_epsilon, "epsilon in rmsprop's denominator", kNotNegative);
  flags.add("adam_beta1", adam_beta1, "decay of the first moment in adam, adamw and lamb", kBelowOne);
  flags.add("adam_beta2", adam_beta2, "decay of the second moment in adam, adamw and lamb", kBelowOne);
  flags.add("adam_epsilon", adam_epsilon, "epsilon in the denominator of adam and adamw", kNotNegative);
  flags.add("lamb_epsilon", lamb_epsilon, "epsilon in the denominator of lamb", kNotNegative);
  flags.add("lars_trust", lars_trust, "trust coefficient of lars", kNotNegative);
  flags.add_choice("larc", larc, {"none", "clip", "scale"},
                   "LARC with sgd, momentum or heavy_ball: a local rate, larc_trust * |v| / |g|, per parameter; clip: "
                   "upper limit on the learning rate; scale: factor of the learning rate");
  flags.add("larc_trust", larc_trust, "trust coefficient of larc", kNotNegative);
  flags.add("larc_joint_norm", larc_joint_norm,
            "larc: |g| is the norm of gradient plus weight decay, as in AWS's deep-learning-models; false: the sum of "
            "both norms and larc_epsilon, as in Apex");
  flags.add("larc_epsilon", larc_epsilon,
            "epsilon of larc, 1e-8 by default; with larc_joint_norm: local rate if a norm is 0, 1 by default",
            kNotNegative);
  flags.add("gradient_clip", gradient_clip, "clip each element of the gradient to +-x", kNotNegative);
  flags.add("gradient_clip_norm", gradient_clip_norm, "clip the global norm of the gradient; 0: off", kNotNegative);
  flags
      .add("weight_decay", weight_decay, "coefficient of the L2 penalty on the parameters of weight_decay_on",
           kNotNegative)
      .setting("weight decay");
  flags.add_choice("weight_decay_on", weight_decay_on, {"weights", "all"},
                   "weights: all parameters except biases and batch norm");
  flags.add("weight_ema", weight_ema,
            "decay of the exponential moving average (EMA) of the parameters, e.g. 0.9999; the EMA is evaluated and "
            "saved too. 0: off",
            kBelowOne);
  flags.add("weight_ema_warmup", weight_ema_warmup, "limit the decay of weight_ema to (1 + t) / (10 + t) at update t");
}

void OptimizerFlags::check(const FlagSet& flags) const {
  const bool clips_values = gradient_clip.value_or(0) > 0, adapts = larc != "none";
  refuse({
      {clips_values && gradient_clip_norm > 0, "--gradient_clip and --gradient_clip_norm: at most one may be given"},
      {clips_values && optimizer == "lars", "--gradient_clip and --optimizer=lars: at most one may be given"},
      {clips_values && adapts, "--gradient_clip and --larc: at most one may be given"},
      {adapts && optimizer != "sgd" && optimizer != "momentum" && optimizer != "heavy_ball",
       "--larc needs --optimizer=sgd, momentum or heavy_ball"},
      {!adapts && (flags.given("larc_trust") || flags.given("larc_epsilon") || larc_joint_norm),
       "--larc_trust, --larc_epsilon and --larc_joint_norm need --larc=clip or scale"},
      {flags.given("lamb_epsilon") && optimizer != "lamb", "--lamb_epsilon needs --optimizer=lamb"},
      {flags.given("weight_ema_warmup") && weight_ema == 0, "--weight_ema_warmup needs --weight_ema"},
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
  update.average_decay = static_cast<float>(weight_ema);
  update.average_warmup = weight_ema_warmup;
  options.averages = weight_ema > 0;
  update.rule = optimizer == "sgd"          ? UpdateRule::sgd
                : optimizer == "momentum"   ? UpdateRule::nesterov
                : optimizer == "heavy_ball" ? UpdateRule::momentum
                : optimizer == "rmsprop"    ? UpdateRule::rmsprop
                : optimizer == "adam"       ? UpdateRule::adam
                : optimizer == "adamw"      ? UpdateRule::adamw
                : optimizer == "lars"       ? UpdateRule::lars
                                            : UpdateRule::lamb;
  if (update.rule == UpdateRule::lamb) update.epsilon = static_cast<float>(lamb_epsilon);
  if (larc == "none") return options;
  update.larc = larc == "clip" ? Larc::clip : Larc::scale;
  update.joint_norm = larc_joint_norm;
  update.trust = static_cast<float>(larc_trust);
  update.epsilon = static_cast<float>(larc_epsilon.value_or(larc_joint_norm ? 1 : 1e-8));
  return options;
}

}  // namespace dtrain::cli
