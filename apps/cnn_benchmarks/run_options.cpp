#include "apps/cnn_benchmarks/run_options.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/ssd/data.h"
#include "libdtrain/run/elastic.h"

namespace dtrain::cnn_benchmarks {

observers::SpeedOptions speed_options(const Settings& settings) {
  const Flags& f = settings.flags;
  // With Horovod, tf_cnn_benchmarks' step lines report one process and its total all processes; else both report all.
  const int64_t ranks = f.distribution.variable_update == "horovod" ? settings.ranks.size : 1;
  observers::SpeedOptions options;
  options.samples_per_step = static_cast<double>(settings.global_batch() / ranks);
  options.ewma = f.display.moving_average();
  options.warmup_steps = static_cast<uint64_t>(settings.warmup_steps);
  return options;
}

namespace {

// Forward, plus twice as much backward; a multiply-add counts as two.
double flops_of_step(const TrainingJob& job) {
  return 3 * 2 * static_cast<double>(job.model.multiply_adds) *
         static_cast<double>(job.settings.batch * job.settings.micro_steps);
}

}  // namespace

TrainerOptions trainer_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  const Flags& f = settings.flags;
  TrainerOptions options;
  if (settings.sums()) options.communicator = job.communicator.get();
  options.buckets = settings.distribution.buckets;
  options.independent = settings.distribution.independent;
  options.equal_statistics = f.ranks.sync_batch_norm;
  options.micro_steps = static_cast<int>(settings.micro_steps);
  options.seed = f.run.seed();
  f.machine.apply(options);
  return options;
}

RunOptions resume_options(const Settings& settings) {
  RunOptions options;
  options.chief = settings.ranks.chief;
  settings.flags.checkpoints.apply(options);
  if (settings.flags.rate_finder.find_learning_rate) options.train_dir.clear();
  return options;
}

RunOptions run_options(TrainingJob& job) {
  const Settings& settings = job.settings;
  const Flags& f = settings.flags;
  RunOptions options = resume_options(settings);
  Cadence& cadence = options.cadence;
  cadence.total_steps = job.plan.total_steps;
  cadence.warmup_steps = static_cast<uint64_t>(settings.warmup_steps);
  cadence.show_every = static_cast<uint64_t>(f.display.display_every);
  cadence.verify_every = static_cast<uint64_t>(f.ranks.verify_weights_every);
  if (!f.checkpoints.train_dir.empty()) cadence.inspect_every = f.summaries.details_every();
  cadence.evaluate_after = job.plan.evaluates_after;
  if (const auto epochs = f.checkpoints.save_model_epochs) {
    const double steps =
        static_cast<double>(job.datasets.sizes.training) / static_cast<double>(settings.global_batch());
    cadence.save_every_steps = std::max<uint64_t>(1, static_cast<uint64_t>(*epochs * steps));
  }
  options.batch = settings.batch;
  options.tune_buckets = settings.distribution.autotune;
  if (f.mode.stop_at_top_1_accuracy)
    options.enough = [least = *f.mode.stop_at_top_1_accuracy](const Evaluation& evaluation) {
      return find_metric(evaluation.values, "top_1_accuracy").value_or(-1) >= least;  // unknown on some ranks
    };
  options.faults = &job.faults;
  return options;
}

observers::TfCnnLogOptions log_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  const Flags& f = settings.flags;
  observers::TfCnnLogOptions options;
  options.speed = speed_options(settings);
  options.global_batch = static_cast<double>(settings.global_batch());
  options.base_loss = f.tf.loss_type_to_report == "base_loss";
  options.accuracies = f.tf.print_training_accuracy || f.mode.forward_only;
  options.trains = settings.trains();
  options.ends_with_evaluation = settings.mode == RunMode::training_and_evaluation;
  options.stop_at_top_1 = f.mode.stop_at_top_1_accuracy;
  if (!job.weights_summary.empty()) options.weights_line = fmt::format("Weights:     {}", job.weights_summary);
  options.machine = settings.machine;
  options.sums = settings.sums();
  options.cuda_graph = settings.machine.gpu && f.machine.cuda_graph;
  options.flops = flops_of_step(job);
  if (job.is_chief()) options.peak = job.peak;
  options.stated_peak = f.performance.peak_tflops.has_value();
  if (f.performance.display_eta) options.eta_of = job.plan.total_steps;
  return options;
}

observers::FigureOptions figure_options(const TrainingJob& job) {
  const Settings& settings = job.settings;
  return {.speed = speed_options(settings),
          .sums = settings.sums(),
          .gpu = settings.machine.gpu,
          .loss_scale = settings.machine.precision == DType::f16,
          .total_steps = job.plan.total_steps,
          .flops = settings.trains() ? flops_of_step(job) : 0,
          .peak = job.peak};
}

observers::LiveViewOptions live_options(const TrainingJob& job) {
  return {.program = "dtrain-cnn-benchmarks",
          .model = job.settings.info.name,
          .ranks = job.settings.ranks.size,
          .figures = figure_options(job)};
}

observers::TracingOptions tracing_options(const TrainingJob& job, cli::Log& log) {
  auto options = observers::tracing_options(job.settings.flags.tracing, job.settings.machine.precision, log);
  options.process = fmt::format("dtrain-cnn-benchmarks, {}", job.group.name(job.settings.ranks.rank));
  options.warmup_steps = static_cast<uint64_t>(job.settings.warmup_steps);
  options.total_steps = job.plan.total_steps;
  return options;
}

// The names of tf_cnn_benchmarks.
observers::EventFilesOptions event_options(const TrainingJob& job) {
  const Flags& f = job.settings.flags;
  const bool base = f.tf.loss_type_to_report == "base_loss";
  observers::ScalarTags evaluation = {
      {"top_1_accuracy", "eval/Accuracy@1"}, {"top_5_accuracy", "eval/Accuracy@5"}, {"loss", "eval/loss"}};
  for (const std::string& name : ssd::score_names()) evaluation[name] = "eval/" + name;
  return {.file = {.folder = f.checkpoints.train_dir,
                   .host = job.group.places()[static_cast<size_t>(job.group.rank())].host},
          .every = static_cast<uint64_t>(f.summaries.save_summaries_steps),
          .details_every = f.summaries.details_every(),
          .tags = {{"total_loss", base ? "" : "total_loss"}, {"loss", base ? "base_loss" : ""}, {"l2_loss", ""}},
          .evaluation_tags = evaluation,
          .class_names = job.datasets.class_names};
}

observers::EventFilesOptions evaluation_event_options(const TrainingJob& job) {
  observers::EventFilesOptions options = event_options(job);
  options.file.folder = job.settings.flags.mode.eval_dir;
  options.file.most_pending = 1;  // the next evaluation may be hours away
  options.trains = false;
  std::error_code failure;  // writing reports the error
  std::filesystem::create_directories(options.file.folder, failure);
  return options;
}

void adopt_checkpoint(Settings& settings, const cli::FlagSet& set, Group& group) {
  if (!settings.trains()) return;
  cli::Distribution& distribution = settings.distribution;
  RunShape shape{.batch = settings.batch,
                 .micro_steps = static_cast<int>(settings.micro_steps),
                 .gradients = distribution.gradients,
                 .buckets = distribution.buckets,
                 .tune_buckets = distribution.autotune,
                 .threads = settings.machine.threads,
                 .cores = cli::available_cores().usable,
                 .device = settings.machine.device()};
  ExplicitSettings asked = settings.flags.ranks.asked_for(set);
  asked.algorithm |= set.given("all_reduce_spec");
  asked.bucket_count = distribution.packs > 0;
  asked.threads = settings.flags.machine.asks_for_threads();
  for (const std::string& notice : elastic_resume(shape, asked, resume_options(settings), group))
    settings.notices.push_back(notice);
  settings.micro_steps = shape.micro_steps;
  settings.machine.threads = shape.threads;
  distribution.gradients = shape.gradients;
  distribution.buckets = shape.buckets;
  distribution.autotune = shape.tune_buckets;
}

}  // namespace dtrain::cnn_benchmarks
