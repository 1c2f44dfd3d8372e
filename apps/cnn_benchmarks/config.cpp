// Resolves defaults that depend on each other, and checks what this build and this machine can serve.
#include "apps/cnn_benchmarks/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

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

// The GPU of this rank: by its number among the ranks of its host, from the list where there is one. A launcher may
// have left each rank one GPU to see, which is number 0 then.
int gpu_index(const std::string& list, const Ranks& ranks) {
  if (list.empty()) return ranks.local_rank < cuda_device_count() ? ranks.local_rank : 0;
  std::vector<int> indices;
  for (const char *at = list.data(), *end = at + list.size();; ++at) {
    int& index = indices.emplace_back(-1);
    const auto [stop, error] = std::from_chars(at, end, index);
    DT_CHECK(error == std::errc() && index >= 0 && (stop == end || *stop == ','), "--gpu_indices=", list,
             ": expected numbers of GPUs with commas between them");
    if (stop == end) break;
    at = stop;
  }
  DT_CHECK(static_cast<int>(indices.size()) >= ranks.local_size, "--gpu_indices=", list, ": ", ranks.local_size,
           " ranks run on this host, one GPU is needed for each");
  return indices[static_cast<size_t>(ranks.local_rank)];
}

// Ranks of a host share its cores, whether mpirun has bound each to some or left them all to all.
void choose_threads(Config& config) {
  Flags& f = config.flags;
  const cli::Cores cores = cli::available_cores();
  const int shared = cores.usable == cores.online ? config.ranks.local_size : 1;
  const int share = std::max(1, cores.usable / shared);
  const auto asked = static_cast<int>(f.num_intra_threads.value_or(0));
  const bool chosen = asked > 0 || std::getenv("OMP_NUM_THREADS") != nullptr;
  config.machine.threads = chosen || config.ranks.size == 1 ? asked : share;
  if (config.ranks.size > 1 && f.datasets_num_private_threads.value_or(0) == 0 && f.num_inter_threads == 0)
    f.datasets_num_private_threads = share;
  const int fair = std::max(1, cores.online / config.ranks.local_size);
  if (asked > cores.usable || (config.ranks.size > 1 && cores.usable < fair))
    config.notices.push_back(concat("this process may use ", cores.usable, " of ", cores.online, " cores",
                                    asked > cores.usable ? concat(", ", asked, " threads were asked for") : "",
                                    ": mpirun binds ranks to cores unless it is given --bind-to none"));
}

void choose_machine(Config& config, const cli::FlagSet& set) {
  Flags& f = config.flags;
  cli::Machine& machine = config.machine;
  machine.index = gpu_index(f.gpu_indices, config.ranks);
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
  choose_threads(config);
  DT_CHECK(machine.gpu || f.precision == "fp32", "--precision=", f.precision,
           ": not served on a CPU; use --precision=fp32");
  DT_CHECK(machine.gpu || f.jpeg_decoder == "host", "--jpeg_decoder=gpu needs --device=gpu");
  DT_CHECK(!f.tf32 || (machine.gpu && f.precision == "fp32"), "--tf32 is a form of --precision=fp32 on a GPU");
}

void check_machine(Config& config, const cli::FlagSet& set) {
  Flags& f = config.flags;
  if (f.use_fp16) f.precision = "fp16";
  DT_CHECK(f.num_gpus == 1, "--num_gpus=", f.num_gpus, ": one process drives one device in this version");
  choose_machine(config, set);
  config.distribution = distribution_of(f, set, config.ranks.size, config.machine.gpu, config.notices);
  if (f.data_format == "NCHW")
    config.notices.push_back("data format NCHW: the engine computes in NHWC; results are the same");
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

Config make_config(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks) {
  refuse_combinations(flags, set);
  set.refuse_unserved();
  Config config;
  config.flags = flags;
  config.ranks = ranks;
  check_machine(config, set);

  config.mode = mode_of(flags);
  config.dataset = dataset_of(flags);
  config.info = cli::find_model(flags.model, config.dataset);
  config.options.image_size = flags.image_size > 0 ? flags.image_size : config.info.image_size;
  config.options.classes = flags.num_classes > 0 ? flags.num_classes : config.dataset == "cifar10" ? 11 : 1001;
  DT_CHECK(!flags.resnet_base_lr || config.info.rate == models::ClassifierInfo::Rate::resnet_imagenet,
           "--resnet_base_lr: of the ResNets for ImageNet only; ", flags.model, " takes --init_learning_rate");

  config.batch = flags.batch_size > 0 ? flags.batch_size : config.info.batch_size;
  config.micro_steps = flags.gradient_accumulation;
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
