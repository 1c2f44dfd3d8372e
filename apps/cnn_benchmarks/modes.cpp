#include "apps/cnn_benchmarks/modes.h"

#include <chrono>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/input_notices.h"
#include "apps/cli/memory_fit.h"
#include "apps/cli/options/cache.h"
#include "apps/cli/rank_table.h"
#include "apps/cli/run_main.h"
#include "apps/cli/saved_checkpoints.h"
#include "apps/cli/stop_signals.h"
#include "apps/cnn_benchmarks/classification_task.h"
#include "apps/cnn_benchmarks/training_outputs.h"
#include "apps/observers/model_details.h"
#include "apps/observers/trace_tables.h"
#include "dtrain/io/remote_cache.h"
#include "dtrain/run/evaluation.h"
#include "dtrain/run/load_checkpoint.h"
#include "dtrain/run/run.h"
#include "models/listing.h"

namespace dtrain::cnn_benchmarks {
namespace {

void announce_graph(const TrainingJob& job, cli::Log& log) {
  log.line("Initializing graph");
  if (job.context->is_cpu()) log.extra("Computing:   " + cli::describe(*job.context));
}

// Logs cli::report_input() of the last evaluation, if any, and what the disk cache of this process did, if it is used.
void report_evaluated(const TrainingJob& job, const cli::ImageTask& task, cli::Log& log) {
  if (job.settings.synthetic()) return;
  cli::report_input(task.evaluation_stats(), job.settings.pixels().orientation, job.settings.decodes_on_gpu(), log);
  if (const std::string text = cli::remote_cache_summary(remote_cache_stats()); !text.empty()) log.notice(text);
}

// Logs cli::report_input() of the training records of all ranks, unless the data is synthetic. Collective.
void report_trained(const TrainingJob& job, const cli::ImageTask& task, cli::Log& log) {
  if (job.settings.synthetic()) return;
  const data::LoaderStats all = cli::over_ranks(job.group, task.stats().value_or(data::LoaderStats()));
  cli::report_input(all, job.settings.pixels().orientation, job.settings.decodes_on_gpu(), log);
}

int train(TrainingJob& job, cli::Log& log, Observer* own_log) {
  const Settings& settings = job.settings;
  announce_graph(job, log);
  if (job.group.size() > 1)
    for (const std::string& line : cli::rank_table(job.group, settings.machine)) log.extra(line);
  Optimizer optimizer(job.store, settings.flags.optimizer.options());
  Trainer trainer(job.store, optimizer, job.schedule.learning_rate, job.trainer_options());
  const std::unique_ptr<cli::ImageTask> task = make_task(job);
  TrainingOutputs outputs(job, log, own_log);
  const auto pictures = [&] { return task->pictures(); };
  outputs.show(observers::details_of({settings.flags.summaries.summary_verbosity, pictures}, trainer));
  RunOptions options = job.run_options();
  if (!job.detector)
    options.advice_on_memory = [&] {
      return cli::advice_on_memory(
          *job.context, job.store,
          {settings.machine, settings.info, settings.options, job.pixels(), settings.shape.batch});
    };
  Run run(*task, trainer, job.group, std::move(options), outputs.observers(), cli::stop_requested);
  const Outcome outcome = run.train();
  report_trained(job, *task, log);
  if (outcome == Outcome::stopped) {
    report_evaluated(job, *task, log);
    log.notice(settings.flags.checkpoints.train_dir.empty()
                   ? "stopped on request; nothing is saved without --train_dir"
                   : fmt::format("stopped on request at step {}; the same command resumes from there", run.step()));
    return cli::kStopped;
  }
  if (settings.mode == RunMode::training_and_evaluation && outcome != Outcome::enough) run.evaluate();
  report_evaluated(job, *task, log);
  return stop_agreed(job.group, cli::stop_requested) ? cli::kStopped : 0;
}

// --find_learning_rate: learning-rate range test; nothing is saved.
int find_learning_rate(TrainingJob& job, cli::Log& log) {
  const Flags& f = job.settings.flags;
  Optimizer optimizer(job.store, f.optimizer.options());
  ClassificationTask task(job);
  observers::TfCnnLogOptions options = log_options(job);
  options.speed.warmup_steps = 0;
  observers::TfCnnLog steps(log, std::move(options), *job.context, *job.communicator);
  const auto sweep = sweep_learning_rate(task, optimizer, job.store, job.trainer_options(), job.group,
                                         job.run_options(), f.rate_finder.options(), {&steps}, cli::stop_requested);
  report_trained(job, task, log);
  if (!sweep) return cli::kStopped;
  f.rate_finder.report(*sweep, log, job.is_chief());
  return 0;
}

// The checkpoints in train_dir. Job and observer outlive them.
cli::SavedCheckpoints checkpoints_of(TrainingJob& job, const Task& task, Observer& observer) {
  TrainState expected;
  task.describe(expected);
  std::map<std::string, std::string> must_match;
  for (const char* key : {"model", "classes"}) must_match[key] = expected.identity.at(key);
  // A preprocessing mismatch with training would silently cost accuracy.
  if (!job.settings.synthetic()) must_match["preprocessing"] = expected.identity.at("preprocessing");
  const int chief = job.settings.ranks.chief;
  return {job.settings.flags.checkpoints.train_dir, job.group, chief, [=, &job, &observer](const std::string& folder) {
            return load_newest_checkpoint(folder, must_match, job.store, *job.communicator, chief, observer);
          }};
}

// --eval: evaluates --weights once, or checkpoints in train_dir: the newest once or every eval_interval_secs, or every
// eval_nth_checkpoints-th.
int evaluate(TrainingJob& job, cli::Log& log, Observer* own_log) {
  const Flags& f = job.settings.flags;
  const std::unique_ptr<cli::ImageTask> task = make_task(job);
  TrainingOutputs outputs(job, log, own_log);
  Observers all(outputs.observers());
  const auto evaluate_step = [&](uint64_t step, const Tensor& average) {
    const auto result =
        dtrain::evaluate(*task, job.store, average, job.group, step, f.display.display_every, all, cli::stop_requested);
    if (result && !std::isfinite(find_metric(result->values, "loss").value_or(0)))
      throw Error(Fault::numeric, "evaluation: the loss is not finite: the model's outputs contain NaN or Inf");
    if (result) report_evaluated(job, *task, log);
    return result.has_value();
  };
  if (!f.checkpoints.weights.empty()) return evaluate_step(0, {}) ? 0 : cli::kStopped;
  const auto evaluate_one = [&](const LoadedCheckpoint& loaded) { return evaluate_step(loaded.step, loaded.average); };
  const bool done = checkpoints_of(job, *task, all)
                        .evaluate(f.mode.eval_nth_checkpoints, f.mode.eval_interval_secs, log, evaluate_one);
  return done ? 0 : cli::kStopped;
}

// --forward_only: inference on training images, with the newest checkpoint in train_dir, if any; nothing is updated or
// saved.
int run_forward_only(TrainingJob& job, cli::Log& log, Observer* own_log) {
  announce_graph(job, log);
  const std::unique_ptr<cli::ImageTask> task = make_task(job);
  TrainingOutputs outputs(job, log, own_log);
  Observers all(outputs.observers());
  if (!job.settings.flags.checkpoints.train_dir.empty()) checkpoints_of(job, *task, all).newest(log);
  const Cadence cadence = job.run_options().cadence;
  task->open(0);
  all.begun({});
  for (uint64_t step = 1; step <= job.schedule.total_steps; ++step) {
    if ((job.group.size() == 1 || step % cadence.show_every == 0) && stop_agreed(job.group, cli::stop_requested)) {
      report_trained(job, *task, log);
      return cli::kStopped;
    }
    all.stepping(step);
    const auto began = std::chrono::steady_clock::now();
    task->load(0);
    Stepped event{.step = step, .shown = cadence.shows(step, 1)};
    event.metrics = task->infer();
    event.wait_seconds = task->wait_seconds();
    event.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    all.stepped(event);
  }
  all.ended({Outcome::finished, job.schedule.total_steps});
  report_trained(job, *task, log);
  return 0;
}

}  // namespace

int run_mode(TrainingJob& job, cli::Log& log, Observer* own_log) {
  if (const std::string& file = job.settings.flags.graph.graph_file; !file.empty() && job.is_chief())
    observers::write_lines(file, models::list_layers(job.model, job.store));
  switch (job.settings.mode) {
    case RunMode::evaluation:
      return evaluate(job, log, own_log);
    case RunMode::forward_only:
      return run_forward_only(job, log, own_log);
    default:
      return job.settings.flags.rate_finder.find_learning_rate ? find_learning_rate(job, log)
                                                               : train(job, log, own_log);
  }
}

}  // namespace dtrain::cnn_benchmarks
