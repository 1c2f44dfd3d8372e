#include "apps/train_imagenet/translation.h"

#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/values.h"

namespace dtrain::train_imagenet {
namespace {

constexpr char kThreads[] = "no TensorFlow thread pools; compute threads: OMP_NUM_THREADS or one per core";
constexpr char kJitter[] = "colour distortions have the strengths of the script";

const std::vector<cli::Argument> kArguments = {
    {"model,m", "resnet18|resnet34|resnet50|resnet101|resnet152", "resnet50", "the network", "model"},
    {"data_dir", "string", "", "folder of train-* and validation-*; required without --synthetic", "data_dir"},
    {"synthetic", "bool", "false", "train on one synthetic batch instead of data", "", "", "", "", "data_dir"},
    {"batch_size,b", "int", "256", "images per rank", "batch_size"},
    {"num_batches", "int", "", "steps; either this or num_epochs is required", "", "", "", "num_batches"},
    {"num_epochs", "int", "", "epochs; takes precedence over num_batches", "", "", "", "num_epochs"},
    {"log_dir", "string", "imagenet_resnet", "folder of checkpoints; a run resumes from the newest", "train_dir"},
    {"log_name", "string", "hvd_train.log", "copy of the log in log_dir, eval_hvd_train.log with --eval"},
    {"clear_log", "bool", "false", "delete the checkpoints, events and the log in log_dir before the start",
     "clear_train_dir"},
    {"local_ckpt", "bool", "false", "log_dir is on a local disk of each host", "local_ckpt"},
    {"display_every", "int", "50", "steps between log lines", "display_every"},
    {"eval", "bool", "false", "evaluate checkpoints of log_dir instead of training", "eval"},
    {"eval_interval", "int", "", "evaluate every n-th checkpoint and the last; default: only the last", "", "", "",
     "eval_nth_checkpoints"},
    {"fp16", "bool", "true", "compute in fp16; the default is fp32 without a GPU", "", "", "", "", "precision"},
    {"num_gpus", "int", "1", "number of GPUs of the training that is evaluated, for the epochs in the table"},
    {"num_parallel_calls", "int", "5", "threads of the input pipeline", "datasets_num_private_threads"},
    {"intra_op_parallelism_threads", "int", "1", "threads per op", "", kThreads},
    {"inter_op_parallelism_threads", "int", "5", "concurrent ops", "", kThreads},
    {"save_checkpoints_steps", "int", "1000", "steps between checkpoints; 0: one epoch", "", "", "", "save_model_steps",
     "save_model_epochs"},
    {"save_summary_steps", "int", "0", "steps between TensorBoard events; 0: display_every", "", "", "",
     "save_summaries_steps"},
    {"adv_bn_init", "bool", "true", "the last batch norm of each block scales by 0 at first", "zero_gamma"},
    {"adv_conv_init", "bool", "true", "initialise convolutions by variance scaling", "", "",
     "TensorFlow's default, the Glorot initialiser, is not supported"},
    {"lr", "float", "", "learning rate; default: 0.1 per 256 images of the global batch, or 3.7 with LARC", "", "", "",
     "init_learning_rate"},
    {"mom", "float", "0.9", "momentum", "momentum"},
    {"wdecay", "float", "0.0001", "weight decay", "weight_decay"},
    {"loss_scale", "float", "1024", "loss scale of fp16", "fp16_loss_scale"},
    {"warmup_lr", "float", "0.001", "learning rate of the first warm-up step", "", "", "", "warmup_learning_rate"},
    {"warmup_epochs", "int", "0", "epochs of linear warm-up to lr", "num_learning_rate_warmup_epochs"},
    {"lr_decay_mode", "steps|poly|poly_cycle|cosine|cosine_decay_restarts|linear_cosine", "poly",
     "learning-rate schedule", "", "", "", "", "lr_schedule,end_learning_rate"},
    {"lr_decay_steps", "string", "30,60,80", "steps: epochs at which the learning rate changes", "", "", "",
     "lr_decay_epochs"},
    {"lr_decay_lrs", "string", "", "steps: the learning rates, one more than lr_decay_steps", "", "", "",
     "lr_decay_lrs"},
    {"use_larc", "bool", "false", "enable LARC", "", "", "", "", "larc,larc_joint_norm,init_learning_rate"},
    {"leta", "float", "0.013", "trust coefficient of LARC", "", "", "", "larc_trust"},
    {"cdr_first_decay_ratio", "float", "0.33", "cosine_decay_restarts: fraction of the run in the first cycle", "", "",
     "", "", "lr_cycle_epochs"},
    {"cdr_t_mul", "float", "2", "factor from one cycle's length to the next", "", "", "", "lr_t_mul"},
    {"cdr_m_mul", "float", "0.1", "factor from one cycle's initial learning rate to the next", "", "", "", "lr_m_mul"},
    {"cdr_alpha", "float", "0", "final learning rate of a cycle as a fraction of its initial one", "", "",
     "cycles end at a learning rate of 0"},
    {"lc_periods", "float", "0.47", "linear_cosine: see --lr_periods of dtrain-cnn-benchmarks", "", "", "",
     "lr_periods"},
    {"lc_alpha", "float", "0", "see lc_periods", "", "", "", "lr_alpha"},
    {"lc_beta", "float", "1e-05", "see lc_periods", "", "", "", "lr_beta"},
    {"increased_aug", "bool", "false", "distort colours", "distortions"},
    {"brightness", "float", "0.3", "how much", "", "", kJitter},
    {"contrast", "float", "0.6", "how much", "", "", kJitter},
    {"saturation", "float", "0.6", "how much", "", "", kJitter},
    {"hue", "float", "0.13", "how much", "", "", kJitter},
};

void check(const cli::FlagSet& flags, bool gpu) {
  const bool synthetic = is_on(flags, "synthetic");
  flags.check_refused();
  cli::refuse({
      {!flags.given("num_batches") && !flags.given("num_epochs"), "expected --num_epochs or --num_batches"},
      {!synthetic && flags.text("data_dir").empty(), "--data_dir is required without --synthetic"},
      {synthetic && is_on(flags, "eval"), "--eval needs data; --synthetic is for training only"},
      {flags.given("fp16") && is_on(flags, "fp16") && !gpu, "--fp16: not supported on a CPU; use --nofp16"},
      {flags.text("lr_decay_mode") == "steps" && !flags.given("lr_decay_lrs"),
       "--lr_decay_mode=steps needs --lr_decay_lrs"},
      {flags.text("lr_decay_mode") == "cosine_decay_restarts" && !flags.given("num_epochs"),
       "--lr_decay_mode=cosine_decay_restarts needs --num_epochs"},
  });
}

// The recipe's mode is poly, with a learning rate scaled with the batch; poly_cycle has a single cycle, the whole run.
std::string rate(const cli::FlagSet& flags) {
  const auto value = [&](const char* name) -> const std::string& { return flags.text(name); };
  const std::string& mode = value("lr_decay_mode");
  if (mode == "steps")
    return fmt::format("--lr_decay_epochs={} --lr_decay_lrs={}", value("lr_decay_steps"), value("lr_decay_lrs"));
  std::string line;
  if (flags.given("lr") || is_on(flags, "use_larc"))
    line = fmt::format("--init_learning_rate={} ", flags.given("lr") ? value("lr") : "3.7");
  if (mode == "cosine") line += "--lr_schedule=cosine --end_learning_rate=0";
  if (mode == "linear_cosine")
    line += fmt::format("--lr_schedule=linear_cosine --lr_periods={} --lr_alpha={} --lr_beta={}", value("lc_periods"),
                        value("lc_alpha"), value("lc_beta"));
  if (mode == "cosine_decay_restarts")
    line += fmt::format(
        "--lr_schedule=cosine_restarts --end_learning_rate=0 --lr_cycle_epochs={} --lr_t_mul={} "
        "--lr_m_mul={}",
        std::stod(value("cdr_first_decay_ratio")) * std::stod(value("num_epochs")), value("cdr_t_mul"),
        value("cdr_m_mul"));
  return line;
}

// Flags that are computed from several arguments.
std::string rest(const cli::FlagSet& flags, bool gpu) {
  const auto value = [&](const char* name) -> const std::string& { return flags.text(name); };
  const auto number = [&](const char* name) { return std::stoll(flags.text(name)); };
  const bool eval = is_on(flags, "eval"), epochs = flags.given("num_epochs");
  // Whatever the path of the data says, it is ImageNet's.
  std::string line =
      "--recipe=aws --data_name=imagenet --num_classes=1000 --label_offset=-1 --num_warmup_batches=0 "
      "--data_format=NHWC ";
  if (is_on(flags, "synthetic")) line += "--data_dir= ";
  line += fmt::format("{}={} {}", epochs ? "--num_epochs" : "--num_batches",
                      epochs ? value("num_epochs") : value("num_batches"), rate(flags));
  line += fmt::format(" --warmup_learning_rate={}", number("warmup_epochs") > 0 ? value("warmup_lr") : "0");
  if (is_on(flags, "use_larc")) line += fmt::format(" --larc=clip --larc_joint_norm --larc_trust={}", value("leta"));
  if (is_on(flags, "fp16") && gpu) line += " --precision=fp16";
  if (eval) line += " --num_eval_epochs=1";
  if (eval && flags.given("eval_interval")) line += fmt::format(" --eval_nth_checkpoints={}", value("eval_interval"));
  if (eval) return line;
  const int64_t saves = number("save_checkpoints_steps"), events = number("save_summary_steps");
  line += saves > 0 ? fmt::format(" --save_model_steps={}", saves) : " --save_model_epochs=1";
  return line + fmt::format(" --max_ckpts_to_keep=1000000000000 --summary_verbosity=1 --save_summaries_steps={}",
                            events > 0 ? events : number("display_every"));
}

}  // namespace

void declare(cli::FlagSet& flags) { cli::declare(flags, "Arguments of train_imagenet_resnet_hvd.py", kArguments); }

cli::FlagNames names(const cli::FlagSet& flags, const std::vector<std::string>& more) {
  return cli::names_of(flags, kArguments, more);
}

std::vector<std::string> translated(const cli::FlagSet& flags, bool gpu) {
  check(flags, gpu);
  std::vector<std::string> line = cli::translated(flags, kArguments);
  cli::append_flags(line, cli::split_words(rest(flags, gpu)));
  return line;
}

}  // namespace dtrain::train_imagenet
