// All flag groups, and checks across groups.
#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {

void Flags::declare(cli::FlagSet& flags) {
  flags.add_config_file();
  std::apply([&](auto&... group) { (group.declare(flags), ...); }, groups(*this));
  declare_unread(flags);
}

void Flags::settle(cli::FlagSet& flags) const {
  if (pixels.input_preprocessor != "default")
    flags.imply("preprocessing", pixels.input_preprocessor, "input_preprocessor");
  if (tf.compatible_with == "1.12" && pixels.preprocessing == "tf_cnn")
    flags.imply("distortions", "true", "compatible_with");
  if (model.detects()) ssd::imply_defaults(flags);
}

void Flags::check(const cli::FlagSet& flags) const {
  std::apply([&](const auto&... group) { (group.check(flags), ...); }, groups(*this));
  check_across_groups();
  if (model.detects())
    ssd::refuse_classifiers_flags(flags);
  else
    DT_CHECK(ssd.given().empty(), "--", ssd.given(), ": for --model=ssd300 only");
  flags.check_refused();
}

void Flags::check_across_groups() const {
  const std::string &train_dir = checkpoints.train_dir, &weights = checkpoints.weights;
  const bool horovod = distribution.variable_update == "horovod";
  cli::refuse({
      {mode.eval && train_dir.empty() && weights.empty(),
       "--eval needs --train_dir, whose newest checkpoint it evaluates, or --weights"},
      {mode.eval && !train_dir.empty() && !weights.empty(), "--eval needs either --train_dir or --weights, not both"},
      {mode.eval && checkpoints.clear_train_dir,
       "--eval and --clear_train_dir: no checkpoint would be left to evaluate"},
      {rate_finder.find_learning_rate && (mode.eval || mode.forward_only),
       "--find_learning_rate trains; it excludes --eval and --forward_only"},
      {checkpoints.follow.wanted() && !mode.evaluates_during_training(),
       "--keep_best and --early_stop_patience need one of --eval_during_training_*"},
      {mode.eval && !(tracing.trace_file.empty() && tracing.tfprof_file.empty() && tracing.profile.empty()),
       "--trace_file, --tfprof_file and --profile need training steps; --eval makes none"},
      {model.resnet_base_lr && !schedule.piecewise_learning_rate_schedule.empty(),
       "--piecewise_learning_rate_schedule and another flag of the learning rate: at most one may be given"},
      {model.resnet_base_lr && !schedule.lr_decay_lrs.empty(),
       "--resnet_base_lr and --lr_decay_lrs: at most one may be given"},
      {model.resnet_base_lr && schedule.init_learning_rate,
       "--resnet_base_lr and --init_learning_rate: at most one may be given"},
      {augment.any() && input.synthetic(), "flags of the group Augmentation need --data_dir"},
      {augment.progressive_resizing.size() > 1 && input.cache_options().keeps_records,
       "--progressive_resizing reopens the files for each size; --datasets_use_caching would cache them twice"},
      {augment.sample().changes_pixels() && input.decodes_on_gpu(),
       "--auto_augment and --color_jitter run on the host and need --jpeg_decoder=host"},
      {horovod && tf.num_gpus > 1, "--variable_update=horovod needs --num_gpus=1: one process per device"},
      {horovod && !distribution.job_name.empty(), "--variable_update=horovod and --job_name: at most one may be given"},
  });
}

}  // namespace dtrain::cnn_benchmarks
