// All groups, and the combinations of flags of several groups that are refused.
#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {

void Flags::declare(cli::FlagSet& flags) {
  std::apply([&](auto&... group) { (group.declare(flags), ...); }, groups(*this));
  declare_unserved(flags);
}

void Flags::check(const cli::FlagSet& flags) const {
  std::apply([&](const auto&... group) { (group.check(flags), ...); }, groups(*this));
  check_across_groups(flags);
  flags.refuse_unserved();
}

void Flags::check_across_groups(const cli::FlagSet& flags) const {
  const std::string &train_dir = checkpoints.train_dir, &weights = checkpoints.weights;
  const std::string &update = distribution.variable_update, &spec = distribution.all_reduce_spec;
  const bool evaluates = mode.evaluates_during_training(), jobs = !distribution.job_name.empty();
  const bool nccl = spec.find("nccl") != std::string::npos;
  const bool fp16_vars = machine.wants_fp16() && flags.text("fp16_vars") == "true";
  const bool auto_scale = machine.wants_fp16() && machine.fp16_enable_auto_loss_scale;
  cli::refuse({
      {mode.eval && train_dir.empty() && weights.empty(),
       "--eval needs --train_dir, whose newest checkpoint it evaluates, or --weights"},
      {mode.eval && !train_dir.empty() && !weights.empty(), "--eval of --train_dir or of --weights: not of both"},
      {mode.forward_only && mode.freeze_when_forward_only && !train_dir.empty(),
       "--freeze_when_forward_only and --train_dir: at most one may be given"},
      {model.resnet_base_lr && !schedule.piecewise_learning_rate_schedule.empty(),
       "--piecewise_learning_rate_schedule and another flag of the learning rate: at most one may be given"},
      {model.resnet_base_lr && !schedule.lr_decay_lrs.empty(),
       "--resnet_base_lr and --lr_decay_lrs: at most one may be given"},
      {model.resnet_base_lr && schedule.init_learning_rate,
       "--resnet_base_lr and --init_learning_rate: at most one may be given"},
      {update == "horovod" && tf.num_gpus > 1, "--variable_update=horovod needs --num_gpus=1: one process per device"},
      {update == "horovod" && jobs, "--variable_update=horovod and --job_name: at most one may be given"},
      {evaluates && jobs, "--eval_during_training_* and --job_name: at most one may be given"},
      {evaluates && distribution.staged_vars, "--eval_during_training_* and --staged_vars: at most one may be given"},
      {distribution.staged_vars && update != "parameter_server",
       "--staged_vars needs --variable_update=parameter_server"},
      {fp16_vars && nccl && update.find("replicated") != std::string::npos,
       "--fp16_vars and --all_reduce_spec=nccl: at most one may be given"},
      {fp16_vars && distribution.gradient_repacking > 0,
       "--fp16_vars and --gradient_repacking: at most one may be given"},
      {auto_scale && nccl, "--fp16_enable_auto_loss_scale and --all_reduce_spec=nccl: at most one may be given"},
      {auto_scale && update != "parameter_server" && update != "replicated" && update != "independent",
       "--fp16_enable_auto_loss_scale needs --variable_update=parameter_server, replicated or independent"},
      {auto_scale && distribution.staged_vars,
       "--fp16_enable_auto_loss_scale and --staged_vars: at most one may be given"},
      {spec == "nccl" && distribution.worker_hosts.size() > 1, "--all_reduce_spec=nccl serves one worker only"},
      {flags.text("gpu_thread_mode") == "global" && flags.text("per_gpu_thread_count") != "0",
       "--per_gpu_thread_count and --gpu_thread_mode=global: at most one may be given"},
  });
}

}  // namespace dtrain::cnn_benchmarks
