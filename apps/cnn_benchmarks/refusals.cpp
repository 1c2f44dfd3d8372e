// Combinations of flags that are refused: tf_cnn_benchmarks' and those of the extensions.
#include "apps/cnn_benchmarks/config.h"

namespace dtrain::cnn_benchmarks {
namespace {

struct Rule {
  bool broken;
  const char* message;
};

void check(std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules) DT_CHECK(!rule.broken, rule.message);
}

int evaluation_forms(const Flags& f) {
  return int{f.eval_during_training_every_n_steps.has_value()} +
         int{f.eval_during_training_every_n_epochs.has_value()} +
         int{!f.eval_during_training_at_specified_steps.empty()} +
         int{!f.eval_during_training_at_specified_epochs.empty()};
}

void check_modes(const Flags& f, const cli::FlagSet& set) {
  const int forms = evaluation_forms(f);
  const bool freezes = f.forward_only && f.freeze_when_forward_only;
  check({
      {f.num_batches && f.num_epochs, "--num_batches and --num_epochs: at most one may be given"},
      {f.num_eval_batches && f.num_eval_epochs, "--num_eval_batches and --num_eval_epochs: at most one may be given"},
      {f.save_model_secs > 0 && f.save_model_steps,
       "--save_model_secs and --save_model_steps: at most one may be given"},
      {forms > 1, "--eval_during_training_*: at most one of the four forms may be given"},
      {f.eval && forms > 0, "--eval and --eval_during_training_*: at most one may be given"},
      {f.forward_only && f.eval, "--forward_only and --eval: at most one may be given"},
      {f.forward_only && forms > 0, "--forward_only and --eval_during_training_*: at most one may be given"},
      {f.stop_at_top_1_accuracy && forms == 0, "--stop_at_top_1_accuracy needs one of --eval_during_training_*"},
      {f.eval && f.train_dir.empty() && f.weights.empty(),
       "--eval needs --train_dir, whose newest checkpoint it evaluates, or --weights"},
      {f.eval && !f.train_dir.empty() && !f.weights.empty(), "--eval of --train_dir or of --weights: not of both"},
      {freezes && !f.train_dir.empty(), "--freeze_when_forward_only and --train_dir: at most one may be given"},
      {!set.text("trt_mode").empty() && !freezes, "--trt_mode needs --forward_only and --freeze_when_forward_only"},
      {f.save_model_steps && f.train_dir.empty(), "--save_model_steps needs --train_dir"},
      {f.save_model_secs > 0 && f.train_dir.empty(), "--save_model_secs needs --train_dir"},
      {set.given("resume") && f.resume != "never" && f.resume != "auto" && f.train_dir.empty(),
       "--resume=PATH needs --train_dir, where the run goes on"},
  });
}

void check_data(const Flags& f) {
  const bool torchvision = f.preprocessing == "torchvision";
  check({
      {torchvision && (f.distortions || f.ml_perf || f.resize_method != "bilinear"),
       "--distortions, --ml_perf and --resize_method need --preprocessing=tf_cnn"},
      {f.num_classes > 0 && f.num_classes < 2, "--num_classes=1: a classifier needs two classes at least"},
  });
}

void check_schedule(const Flags& f, const cli::FlagSet& set) {
  const bool decays = f.num_epochs_per_decay > 0 && f.learning_rate_decay_factor > 0 && f.init_learning_rate;
  const bool piecewise = !f.piecewise_learning_rate_schedule.empty();
  const bool extension = f.lr_schedule != "auto";
  check({
      {piecewise && (f.init_learning_rate || f.num_epochs_per_decay > 0 || f.learning_rate_decay_factor > 0 ||
                     f.minimum_learning_rate > 0 || f.resnet_base_lr || extension),
       "--piecewise_learning_rate_schedule and another flag of the learning rate: at most one may be given"},
      {(f.num_epochs_per_decay > 0 || f.learning_rate_decay_factor > 0) && !decays,
       "--num_epochs_per_decay and --learning_rate_decay_factor need each other and --init_learning_rate"},
      {f.minimum_learning_rate > 0 && !decays,
       "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and --learning_rate_decay_factor"},
      {f.num_learning_rate_warmup_epochs > 0 && !f.init_learning_rate && !piecewise,
       "--num_learning_rate_warmup_epochs needs --init_learning_rate or --piecewise_learning_rate_schedule"},
      {f.resnet_base_lr && f.init_learning_rate, "--resnet_base_lr and --init_learning_rate: at most one may be given"},
      {extension && !f.init_learning_rate, "--lr_schedule needs --init_learning_rate"},
      {extension && decays, "--lr_schedule and the flags of the exponential decay: at most one may be given"},
      {(set.given("end_learning_rate") || set.given("lr_power")) && f.lr_schedule != "cosine" &&
           f.lr_schedule != "polynomial",
       "--end_learning_rate and --lr_power need --lr_schedule=cosine or polynomial"},
  });
}

void check_optimizer(const Flags& f) {
  const bool clips_values = f.gradient_clip.value_or(0) > 0;
  check({
      {clips_values && f.gradient_clip_norm > 0, "--gradient_clip and --gradient_clip_norm: at most one may be given"},
      {clips_values && f.optimizer == "lars", "--gradient_clip and --optimizer=lars: at most one may be given"},
  });
}

void check_distribution(const Flags& f, const cli::FlagSet& set) {
  const bool horovod = f.variable_update == "horovod";
  const bool nccl = f.all_reduce_spec.find("nccl") != std::string::npos;
  const bool fp16 = f.use_fp16 || f.precision == "fp16";
  const bool fp16_vars = fp16 && set.text("fp16_vars") == "true";
  const bool auto_scale = fp16 && set.text("fp16_enable_auto_loss_scale") == "true";
  const bool staged = f.staged_vars, jobs = !f.job_name.empty();
  check({
      {horovod && f.num_gpus > 1, "--variable_update=horovod needs --num_gpus=1: one process per device"},
      {horovod && jobs, "--variable_update=horovod and --job_name: at most one may be given"},
      {evaluation_forms(f) > 0 && jobs, "--eval_during_training_* and --job_name: at most one may be given"},
      {evaluation_forms(f) > 0 && staged, "--eval_during_training_* and --staged_vars: at most one may be given"},
      {staged && f.variable_update != "parameter_server", "--staged_vars needs --variable_update=parameter_server"},
      {fp16_vars && nccl && f.variable_update.find("replicated") != std::string::npos,
       "--fp16_vars and --all_reduce_spec=nccl: at most one may be given"},
      {fp16_vars && f.gradient_repacking > 0, "--fp16_vars and --gradient_repacking: at most one may be given"},
      {auto_scale && nccl, "--fp16_enable_auto_loss_scale and --all_reduce_spec=nccl: at most one may be given"},
      {auto_scale && f.variable_update != "parameter_server" && f.variable_update != "replicated" &&
           f.variable_update != "independent",
       "--fp16_enable_auto_loss_scale needs --variable_update=parameter_server, replicated or independent"},
      {auto_scale && staged, "--fp16_enable_auto_loss_scale and --staged_vars: at most one may be given"},
      {f.all_reduce_spec == "nccl" && f.worker_hosts.size() > 1, "--all_reduce_spec=nccl serves one worker only"},
      {set.text("gpu_thread_mode") == "global" && set.text("per_gpu_thread_count") != "0",
       "--per_gpu_thread_count and --gpu_thread_mode=global: at most one may be given"},
      {f.use_fp16 && set.given("precision") && f.precision != "fp16",
       "--use_fp16 and --precision: they ask for different precisions"},
  });
}

}  // namespace

void refuse_combinations(const Flags& flags, const cli::FlagSet& set) {
  check_modes(flags, set);
  check_data(flags);
  check_schedule(flags, set);
  check_optimizer(flags);
  check_distribution(flags, set);
}

}  // namespace dtrain::cnn_benchmarks
