#include "apps/imagenet_main/translation.h"

#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/values.h"

namespace dtrain::imagenet_main {
namespace {

const std::vector<cli::Argument> kArguments = {
    {"data_dir,dd", "string", "", "folder of train-* and validation-*; required without --use_synthetic_data",
     "data_dir"},
    {"model_dir,md", "string", "",
     "folder of the checkpoints; a run resumes from the newest. Without it no checkpoints are saved", "", "", "", "",
     "train_dir"},
    {"train_epochs,te", "int", "90", "epochs, in whole cycles", "", "", "", "", "num_epochs"},
    {"epochs_between_evals,ebe", "int", "1", "epochs of a cycle, which ends with an evaluation", "", "", "",
     "eval_during_training_every_n_epochs"},
    {"stop_threshold,st", "float", "", "top-1 accuracy at which the run stops", "stop_at_top_1_accuracy"},
    {"batch_size,bs", "int", "32", "images per rank", "batch_size"},
    {"max_train_steps,mts", "int", "", "upper limit on steps, and on batches of an evaluation", "max_train_steps", "",
     "", "num_eval_batches"},
    {"resnet_size,rs", "18|34|50|101|152|200", "50", "layers", "", "", "", "", "model"},
    {"version,v", "1|2", "1", "1: ResNet v1.5", "", "", "MLPerf's reference is version 1, which is v1.5"},
    {"enable_lars", "bool", "false", "LARS and its rates", "", "", "", "", "recipe"},
    {"label_smoothing", "float", "0", "probability mass of the target that is spread evenly over all classes",
     "label_smoothing"},
    {"weight_decay", "float", "0.0001", "weight decay", "weight_decay"},
    {"use_synthetic_data,synth", "bool", "false", "a synthetic batch instead of data", "", "", "", "", "data_dir"},
    {"dtype,dt", "fp32|fp16", "fp32", "type of activations", "", "", "", "", "precision"},
    {"use_bfloat16", "bool", "false", "bfloat16 activations", "", "", "", "", "precision"},
    {"loss_scale,ls", "float", "", "loss scale of fp16", "fp16_loss_scale"},
    {"num_gpus,ng", "int", "", "0: the CPU; more than 1: the program starts one rank per GPU", "", "", "", "",
     "device,num_gpus,variable_update"},
    {"intra_op_parallelism_threads,intra", "int", "", "compute threads; 0: one per core", "num_intra_threads"},
    {"inter_op_parallelism_threads,inter", "int", "0", "concurrent ops", "",
     "ops of a step run sequentially, concurrently with the input pipeline and the all-reduce"},
    {"data_format,df", "channels_first|channels_last", "", "", "", "the engine computes in channels_last"},
    {"hooks,hk", "string", "", "TensorFlow's hooks", "", "the log has one line per ten steps"},
    {"fine_tune", "bool", "false", "train only the last layer", "", "", "all layers are trained"},
    {"export_dir,ed", "string", "", "folder of a SavedModel", "", "", "checkpoints contain the weights as safetensors"},
    {"benchmark_log_dir,bld", "string", "", "folder for logs in the format of TensorFlow's model garden",
     "benchmark_log_dir"},
};

int64_t whole(const cli::FlagSet& flags, const char* name) {
  return flags.text(name).empty() ? 0 : std::stoll(flags.text(name));
}

void check(const cli::FlagSet& flags) {
  flags.check_refused();
  const bool synthetic = is_on(flags, "use_synthetic_data");
  const int64_t between = whole(flags, "epochs_between_evals");
  cli::refuse({
      {flags.text("data_dir").empty() && !synthetic, "--data_dir is required without --use_synthetic_data"},
      {between == 0, "--epochs_between_evals=0: expected at least 1"},
      {between > 0 && whole(flags, "train_epochs") < between,
       "--train_epochs is less than --epochs_between_evals: no cycle would be trained"},
      {is_on(flags, "use_bfloat16") && flags.text("dtype") == "fp16",
       "--use_bfloat16 and --dtype=fp16: at most one may be given"},
  });
}

// Flags that are computed from several arguments.
std::string rest(const cli::FlagSet& flags) {
  const int64_t between = whole(flags, "epochs_between_evals"), limit = whole(flags, "max_train_steps");
  std::string line = fmt::format(
      "--recipe={} --model=resnet{} --data_name=imagenet --num_classes=1001 --label_offset=0 --num_warmup_batches=0 "
      "--data_format=NHWC --display_every=10 --variable_update=horovod --num_epochs={} "
      "--eval_during_training_every_n_epochs={}",
      is_on(flags, "enable_lars") ? "mlperf" : "intel", flags.text("resnet_size"),
      whole(flags, "train_epochs") / between * between, between);
  line += limit > 0 ? fmt::format(" --num_eval_batches={}", limit) : " --num_eval_epochs=1";
  if (is_on(flags, "use_synthetic_data")) line += " --data_dir=";
  if (is_on(flags, "use_bfloat16")) line += " --precision=bf16";
  if (flags.text("dtype") == "fp16") line += " --precision=fp16";
  if (flags.given("num_gpus")) line += whole(flags, "num_gpus") > 0 ? " --device=gpu" : " --device=cpu";
  if (whole(flags, "num_gpus") > 1)
    line += fmt::format(" --variable_update=replicated --num_gpus={}", whole(flags, "num_gpus"));
  return line;
}

}  // namespace

void declare(cli::FlagSet& flags) { cli::declare(flags, "Arguments of imagenet_main.py", kArguments); }

cli::FlagNames names(const cli::FlagSet& flags, const std::vector<std::string>& more) {
  return cli::names_of(flags, kArguments, more);
}

std::vector<std::string> translated(const cli::FlagSet& flags, const std::string& seed) {
  check(flags);
  std::vector<std::string> line = cli::translated(flags, kArguments);
  cli::append_flags(line, cli::split_words(rest(flags)));
  line.push_back("--tf_random_seed=" + seed);
  // The original's chief writes into this subfolder.
  if (flags.given("model_dir")) line.push_back(fmt::format("--train_dir={}/main", flags.text("model_dir")));
  return line;
}

}  // namespace dtrain::imagenet_main
