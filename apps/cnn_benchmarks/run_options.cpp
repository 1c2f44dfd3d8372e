#include "apps/cnn_benchmarks/run_options.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/ssd/data.h"
#include "libdtrain/run/elastic.h"

namespace dtrain::cnn_benchmarks {

observers::SpeedOptions speed_options(const Config& config) {
  const Flags& f = config.flags;
  // With Horovod, tf_cnn_benchmarks' step lines report one process and its total all processes; else both report all.
  const int64_t ranks = f.distribution.variable_update == "horovod" ? config.ranks.size : 1;
  observers::SpeedOptions options;
  options.samples_per_step = static_cast<double>(config.global_batch() / ranks);
  options.ewma = f.display.moving_average();
  options.warmup_steps = static_cast<uint64_t>(config.warmup_steps);
  return options;
}

namespace {

// Forward, plus twice as much backward; a multiply-add counts as two.
double flops_of_step(const Session& session) {
  return 3 * 2 * static_cast<double>(session.model.multiply_adds) *
         static_cast<double>(session.config.batch * session.config.micro_steps);
}

}  // namespace

TrainerOptions trainer_options(const Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  TrainerOptions options;
  if (config.sums()) options.communicator = session.communicator.get();
  options.buckets = config.distribution.buckets;
  options.independent = config.distribution.independent;
  options.equal_statistics = f.ranks.sync_batch_norm;
  options.micro_steps = static_cast<int>(config.micro_steps);
  options.seed = f.run.seed();
  f.machine.apply(options);
  return options;
}

RunOptions resume_options(const Config& config) {
  RunOptions options;
  options.chief = config.ranks.chief;
  config.flags.checkpoints.apply(options);
  if (config.flags.rate_finder.find_learning_rate) options.train_dir.clear();
  return options;
}

RunOptions run_options(Session& session) {
  const Config& config = session.config;
  const Flags& f = config.flags;
  RunOptions options = resume_options(config);
  Cadence& cadence = options.cadence;
  cadence.total_steps = session.plan.total_steps;
  cadence.warmup_steps = static_cast<uint64_t>(config.warmup_steps);
  cadence.show_every = static_cast<uint64_t>(f.display.display_every);
  cadence.verify_every = static_cast<uint64_t>(f.ranks.verify_weights_every);
  if (!f.checkpoints.train_dir.empty()) cadence.inspect_every = f.summaries.details_every();
  cadence.evaluate_after = session.plan.evaluates_after;
  if (const auto epochs = f.checkpoints.save_model_epochs) {
    const double steps =
        static_cast<double>(session.datasets.sizes.training) / static_cast<double>(config.global_batch());
    cadence.save_every_steps = std::max<uint64_t>(1, static_cast<uint64_t>(*epochs * steps));
  }
  options.batch = config.batch;
  options.tune_buckets = config.distribution.autotune;
  if (f.mode.stop_at_top_1_accuracy)
    options.enough = [least = *f.mode.stop_at_top_1_accuracy](const Evaluation& evaluation) {
      return find_metric(evaluation.values, "top_1_accuracy").value_or(-1) >= least;  // unknown on some ranks
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
  options.base_loss = f.tf.loss_type_to_report == "base_loss";
  options.accuracies = f.tf.print_training_accuracy || f.mode.forward_only;
  options.trains = config.trains();
  options.ends_with_evaluation = config.mode == RunMode::training_and_evaluation;
  options.stop_at_top_1 = f.mode.stop_at_top_1_accuracy;
  if (!session.weights_summary.empty()) options.weights_line = fmt::format("Weights:     {}", session.weights_summary);
  options.machine = config.machine;
  options.sums = config.sums();
  options.cuda_graph = config.machine.gpu && f.machine.cuda_graph;
  options.flops = flops_of_step(session);
  if (session.is_chief()) options.peak = session.peak;
  options.stated_peak = f.performance.peak_tflops.has_value();
  if (f.performance.display_eta) options.eta_of = session.plan.total_steps;
  return options;
}

observers::FigureOptions figure_options(const Session& session) {
  const Config& config = session.config;
  return {.speed = speed_options(config),
          .sums = config.sums(),
          .gpu = config.machine.gpu,
          .loss_scale = config.machine.precision == DType::f16,
          .total_steps = session.plan.total_steps,
          .flops = config.trains() ? flops_of_step(session) : 0,
          .peak = session.peak};
}

observers::LiveViewOptions live_options(const Session& session) {
  return {.program = "dtrain-cnn-benchmarks",
          .model = session.config.info.name,
          .ranks = session.config.ranks.size,
          .figures = figure_options(session)};
}

observers::TracingOptions tracing_options(const Session& session, cli::Log& log) {
  auto options = observers::tracing_options(session.config.flags.tracing, session.config.machine.precision, log);
  options.process = fmt::format("dtrain-cnn-benchmarks, {}", session.group.name(session.config.ranks.rank));
  options.warmup_steps = static_cast<uint64_t>(session.config.warmup_steps);
  options.total_steps = session.plan.total_steps;
  return options;
}

// The names of tf_cnn_benchmarks.
observers::EventFilesOptions event_options(const Session& session) {
  const Flags& f = session.config.flags;
  const bool base = f.tf.loss_type_to_report == "base_loss";
  observers::ScalarTags evaluation = {
      {"top_1_accuracy", "eval/Accuracy@1"}, {"top_5_accuracy", "eval/Accuracy@5"}, {"loss", "eval/loss"}};
  for (const std::string& name : ssd::score_names()) evaluation[name] = "eval/" + name;
  return {.file = {.folder = f.checkpoints.train_dir,
                   .host = session.group.places()[static_cast<size_t>(session.group.rank())].host},
          .every = static_cast<uint64_t>(f.summaries.save_summaries_steps),
          .details_every = f.summaries.details_every(),
          .tags = {{"total_loss", base ? "" : "total_loss"}, {"loss", base ? "base_loss" : ""}, {"l2_loss", ""}},
          .evaluation_tags = evaluation,
          .class_names = session.datasets.class_names};
}

observers::EventFilesOptions evaluation_event_options(const Session& session) {
  observers::EventFilesOptions options = event_options(session);
  options.file.folder = session.config.flags.mode.eval_dir;
  options.file.most_pending = 1;  // the next evaluation may be hours away
  options.trains = false;
  std::error_code failure;  // writing reports the error
  std::filesystem::create_directories(options.file.folder, failure);
  return options;
}

void keep_checkpoint(Config& config, const cli::FlagSet& set, Group& group) {
  if (!config.trains()) return;
  cli::Distribution& distribution = config.distribution;
  RunShape shape{.batch = config.batch,
                 .micro_steps = static_cast<int>(config.micro_steps),
                 .gradients = distribution.gradients,
                 .buckets = distribution.buckets,
                 .tune_buckets = distribution.autotune,
                 .threads = config.machine.threads,
                 .cores = cli::available_cores().usable,
                 .device = config.machine.device()};
  ExplicitSettings asked = config.flags.ranks.asked_for(set);
  asked.algorithm |= set.given("all_reduce_spec");
  asked.bucket_count = distribution.packs > 0;
  asked.threads = config.flags.machine.asks_for_threads();
  for (const std::string& notice : elastic_resume(shape, asked, resume_options(config), group))
    config.notices.push_back(notice);
  config.micro_steps = shape.micro_steps;
  config.machine.threads = shape.threads;
  distribution.gradients = shape.gradients;
  distribution.buckets = shape.buckets;
  distribution.autotune = shape.tune_buckets;
}

}  // namespace dtrain::cnn_benchmarks
