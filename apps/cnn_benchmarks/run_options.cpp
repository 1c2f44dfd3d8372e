#include "apps/cnn_benchmarks/run_options.h"

#include <cstdlib>

#include <fmt/format.h>

#include "libdtrain/run/elastic.h"

namespace dtrain::cnn_benchmarks {
namespace {

observers::SpeedOptions speed_options(const Config& config) {
  const Flags& f = config.flags;
  // With Horovod tf_cnn_benchmarks' lines are about a process, its total about all; else all is about all.
  const int64_t ranks = f.variable_update == "horovod" ? config.ranks.size : 1;
  observers::SpeedOptions options;
  options.samples_per_step = static_cast<double>(config.global_batch() / ranks);
  if (f.display_perf_ewma && *f.display_perf_ewma > 0) options.ewma = f.display_perf_ewma;
  options.warmup_steps = static_cast<uint64_t>(config.warmup_steps);
  return options;
}

}  // namespace

TrainerOptions trainer_options(const Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  TrainerOptions options;
  if (config.sums()) options.communicator = session.communicator.get();
  options.buckets = config.distribution.buckets;
  options.independent = config.distribution.independent;
  options.equal_statistics = f.sync_batch_norm;
  options.micro_steps = static_cast<int>(config.micro_steps);
  options.seed = static_cast<uint64_t>(f.tf_random_seed);
  options.cuda_graph = f.cuda_graph;
  if (config.machine.precision == DType::f16) {
    constexpr double kLossScale = 128;  // tf_cnn_benchmarks' for all its models
    options.loss_scale = static_cast<float>(f.fp16_loss_scale.value_or(kLossScale));
    if (f.fp16_enable_auto_loss_scale)
      options.double_loss_scale_after = static_cast<int>(f.fp16_inc_loss_scale_every_n);
  }
  return options;
}

RunOptions resume_options(const Config& config) {
  const Flags& f = config.flags;
  RunOptions options;
  options.chief = config.ranks.chief;
  options.train_dir = f.train_dir;
  options.resume = f.resume == "never" ? Resume::never : Resume::newest;
  if (f.resume != "never" && f.resume != "auto") options.resume_from = f.resume;
  return options;
}

RunOptions run_options(Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  RunOptions options = resume_options(config);
  Cadence& cadence = options.cadence;
  cadence.total_steps = session.plan.total_steps;
  cadence.warmup_steps = static_cast<uint64_t>(config.warmup_steps);
  cadence.show_every = static_cast<uint64_t>(f.display_every);
  cadence.save_every_steps = static_cast<uint64_t>(f.save_model_steps.value_or(0));
  cadence.save_every_seconds = static_cast<double>(f.save_model_secs);
  cadence.verify_every = static_cast<uint64_t>(f.verify_weights_every);
  cadence.evaluate_after = session.plan.eval_steps;
  options.batch = config.batch;
  options.keep = static_cast<int>(f.max_ckpts_to_keep);
  options.tune_buckets = config.distribution.autotune;
  if (f.stop_at_top_1_accuracy)
    options.enough = [least = *f.stop_at_top_1_accuracy](const Evaluation& evaluation) {
      return evaluation.value("top_1_accuracy") >= least;
    };
  options.faults = &session.faults;
  return options;
}

observers::TfCnnLogOptions log_options(const Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  observers::TfCnnLogOptions options;
  options.speed = speed_options(config);
  options.global_batch = static_cast<double>(config.global_batch());
  options.base_loss = f.loss_type_to_report == "base_loss";
  options.accuracies = f.print_training_accuracy || f.forward_only;
  options.trains = config.trains();
  options.ends_with_evaluation = config.mode == RunMode::training_and_evaluation;
  options.stop_at_top_1 = f.stop_at_top_1_accuracy;
  if (!session.weights_summary.empty())
    options.weights_line = fmt::format("Weights:     {} ({})", f.weights, session.weights_summary);
  options.machine = config.machine;
  options.sums = config.sums();
  options.replays = config.machine.gpu && f.cuda_graph;
  // Forward, and twice as much backward; a multiply-add is two.
  options.flops =
      3 * 2 * static_cast<double>(session.model.multiply_adds) * static_cast<double>(config.batch * config.micro_steps);
  return options;
}

observers::JsonLinesOptions json_options(const Session& session) {
  const Config& config = session.config;
  return {.path = config.flags.metrics_file,
          .speed = speed_options(config),
          .sums = config.sums(),
          .gpu = config.machine.gpu,
          .loss_scale = config.machine.precision == DType::f16};
}

void keep_checkpoint(Config& config, const cli::FlagSet& set, Group& group) {
  if (!config.trains()) return;
  Distribution& distribution = config.distribution;
  RunShape shape{.batch = config.batch,
                 .micro_steps = static_cast<int>(config.micro_steps),
                 .gradients = distribution.gradients,
                 .buckets = distribution.buckets,
                 .tune_buckets = distribution.autotune,
                 .threads = config.machine.threads,
                 .cores = cli::available_cores().usable,
                 .device = config.flags.device};
  const bool threads = config.flags.num_intra_threads.value_or(0) > 0 || std::getenv("OMP_NUM_THREADS") != nullptr;
  const AskedFor asked{.wire = set.given("wire_precision"),
                       .algorithm = set.given("all_reduce_algorithm") || set.given("all_reduce_spec"),
                       .bucket_bytes = set.given("bucket_mb"),
                       .last_bucket_bytes = set.given("last_bucket_mb"),
                       .bucket_count = distribution.packs > 0,
                       .threads = threads};
  for (const std::string& notice : continue_as_trained(shape, asked, resume_options(config), group))
    config.notices.push_back(notice);
  config.micro_steps = shape.micro_steps;
  config.machine.threads = shape.threads;
  distribution.gradients = shape.gradients;
  distribution.buckets = shape.buckets;
  distribution.autotune = shape.tune_buckets;
}

}  // namespace dtrain::cnn_benchmarks
