// Resolves defaults that depend on each other, and checks what this build and this machine can serve.
#include "apps/cnn_benchmarks/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace dtrain::cnn_benchmarks {
namespace {

RunMode mode_of(const Flags& f) {
  if (f.eval) return RunMode::evaluation;
  if (f.forward_only) return RunMode::forward_only;
  const bool evaluates = f.eval_during_training_every_n_steps || f.eval_during_training_every_n_epochs ||
                         !f.eval_during_training_at_specified_steps.empty() ||
                         !f.eval_during_training_at_specified_epochs.empty();
  return evaluates ? RunMode::training_and_evaluation : RunMode::training;
}

// By name, or as tf_cnn_benchmarks guesses it: by what the path of the data contains.
std::string dataset_of(const Flags& f) {
  if (f.data_name.empty()) return f.data_dir.find("cifar10") != std::string::npos ? "cifar10" : "imagenet";
  DT_CHECK(f.data_name == "imagenet" || f.data_name == "cifar10", "--data_name=", f.data_name,
           ": not served by this version; expected imagenet or cifar10");
  return f.data_name;
}

// Started under mpirun or the like, several processes would each train a model of their own and say nothing.
void refuse_many_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(name);
    DT_CHECK(size == nullptr || std::atoi(size) <= 1, "started as one of ", size, " processes (", name,
             "): this version trains with one");
  }
}

int gpu_index(const std::string& text) {
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  DT_CHECK(text.empty() || (error == std::errc() && end == text.data() + text.size() && index >= 0),
           "--gpu_indices=", text, ": expected the number of one GPU");
  return index;
}

void choose_machine(Config& config, const cli::FlagSet& set) {
  Flags& f = config.flags;
  cli::Machine& machine = config.machine;
  machine.index = gpu_index(f.gpu_indices);
  if (f.device == "gpu") {
    const std::string reason = cli::why_no_gpu(machine.index);
    DT_CHECK(reason.empty() || !set.given("device"), "--device=gpu: no GPU ", machine.index, ": ", reason,
             "; use --device=cpu");
    if (!reason.empty()) {
      config.notices.push_back("no --device given and no GPU: " + reason + ": running on the CPU");
      f.device = "cpu";
    }
  }
  machine.gpu = f.device == "gpu";
  machine.precision = cli::precision_of(f.precision);
  machine.tf32 = f.tf32;
  machine.deterministic = f.deterministic;
  machine.memory_share = f.gpu_memory_frac_for_testing;
  machine.threads = static_cast<int>(f.num_intra_threads.value_or(0));
  DT_CHECK(machine.gpu || f.precision == "fp32", "--precision=", f.precision,
           ": not served on a CPU; use --precision=fp32");
  DT_CHECK(!f.tf32 || (machine.gpu && f.precision == "fp32"), "--tf32 is a form of --precision=fp32 on a GPU");
}

void check_machine(Config& config, const cli::FlagSet& set) {
  Flags& f = config.flags;
  if (f.use_fp16) f.precision = "fp16";
  DT_CHECK(f.num_gpus == 1, "--num_gpus=", f.num_gpus, ": one process drives one device in this version");
  DT_CHECK(f.variable_update == "parameter_server" || f.variable_update == "replicated" ||
               f.variable_update == "independent" || f.variable_update == "horovod",
           "--variable_update=", f.variable_update,
           ": not served by this version; one process trains alone with parameter_server, replicated, independent or "
           "horovod");
  choose_machine(config, set);
  if (f.data_format == "NCHW")
    config.notices.push_back("data format NCHW: the engine computes in NHWC; results are the same");
  refuse_many_processes();
}

}  // namespace

const char* name_of(RunMode mode) {
  switch (mode) {
    case RunMode::training:
      return "training";
    case RunMode::training_and_evaluation:
      return "training + evaluation";
    case RunMode::evaluation:
      return "evaluation";
    case RunMode::forward_only:
      return "forward only";
  }
  return "";
}

cli::Pixels Config::pixels() const {
  cli::Pixels pixels;
  pixels.preprocessing = flags.preprocessing;
  pixels.dataset = dataset;
  pixels.resize_method = flags.resize_method;
  pixels.distortions = flags.distortions;
  pixels.distort_in_yiq = flags.distort_color_in_yiq;
  pixels.ml_perf = flags.ml_perf;
  pixels.size = static_cast<int>(options.image_size);
  return pixels;
}

Config make_config(const Flags& flags, const cli::FlagSet& set) {
  refuse_combinations(flags, set);
  set.refuse_unserved();
  Config config;
  config.flags = flags;
  check_machine(config, set);

  config.mode = mode_of(flags);
  config.dataset = dataset_of(flags);
  config.info = cli::find_model(flags.model, config.dataset);
  config.options.image_size = flags.image_size > 0 ? flags.image_size : config.info.image_size;
  config.options.classes = flags.num_classes > 0 ? flags.num_classes : config.dataset == "cifar10" ? 11 : 1001;
  DT_CHECK(!flags.resnet_base_lr || config.info.rate == models::ClassifierInfo::Rate::resnet_imagenet,
           "--resnet_base_lr: of the ResNets for ImageNet only; ", flags.model, " takes --init_learning_rate");

  config.batch = flags.batch_size > 0 ? flags.batch_size : config.info.batch_size;
  config.eval_batch = flags.eval_batch_size > 0 ? flags.eval_batch_size : config.batch;
  const int64_t tries = flags.autotune_threshold.value_or(1);
  config.warmup_steps = flags.num_warmup_batches.value_or(std::max<int64_t>(10, 5 * tries * tries));
  return config;
}

OptimizerOptions optimizer_options(const Flags& f) {
  OptimizerOptions options;
  UpdateOptions& update = options.update;
  options.weight_decay = static_cast<float>(f.weight_decay);
  update.momentum = static_cast<float>(f.optimizer == "rmsprop" ? f.rmsprop_momentum : f.momentum);
  update.epsilon = static_cast<float>(f.optimizer == "rmsprop" ? f.rmsprop_epsilon : f.adam_epsilon);
  update.rho = static_cast<float>(f.rmsprop_decay);
  update.beta1 = static_cast<float>(f.adam_beta1);
  update.beta2 = static_cast<float>(f.adam_beta2);
  update.trust = static_cast<float>(f.lars_trust);
  update.clip_value = static_cast<float>(f.gradient_clip.value_or(0));
  update.clip_norm = static_cast<float>(f.gradient_clip_norm);
  update.rule = f.optimizer == "sgd"        ? UpdateRule::sgd
                : f.optimizer == "momentum" ? UpdateRule::nesterov
                : f.optimizer == "rmsprop"  ? UpdateRule::rmsprop
                : f.optimizer == "adam"     ? UpdateRule::adam
                : f.optimizer == "adamw"    ? UpdateRule::adamw
                                            : UpdateRule::lars;
  return options;
}

}  // namespace dtrain::cnn_benchmarks
