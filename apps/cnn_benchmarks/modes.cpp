#include "apps/cnn_benchmarks/modes.h"

#include <chrono>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/agreed_stop.h"
#include "apps/cli/input_notices.h"
#include "apps/cli/memory_fit.h"
#include "apps/cli/rank_table.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/cnn_benchmarks/classification_task.h"
#include "apps/cnn_benchmarks/run_options.h"
#include "apps/cnn_benchmarks/training_outputs.h"
#include "apps/observers/model_details.h"
#include "apps/observers/trace_tables.h"
#include "libdtrain/run/evaluation.h"
#include "libdtrain/run/load_checkpoint.h"
#include "libdtrain/run/run.h"
#include "models/listing.h"

namespace dtrain::cnn_benchmarks {
namespace {

void announce_graph(const Session& session, cli::Log& log) {
  log.line("Initializing graph");
  if (session.context->is_cpu()) log.line("Computing:   " + cli::describe(*session.context));
}

// Logs cli::report_input() of the last evaluation, if any.
void report_evaluated(const Session& session, const cli::ImageTask& task, cli::Log& log) {
  if (session.config.synthetic()) return;
  cli::report_input(task.evaluation_stats(), session.config.pixels().orientation, session.config.decodes_on_gpu(), log);
}

int train(Session& session, cli::Log& log, Observer* own_log) {
  const Config& config = session.config;
  announce_graph(session, log);
  if (session.group.size() > 1)
    for (const std::string& line : cli::rank_table(session.group, config.machine)) log.line(line);
  Optimizer optimizer(session.store, config.flags.optimizer.options());
  Trainer trainer(session.store, optimizer, session.plan.schedule, trainer_options(session));
  const std::unique_ptr<cli::ImageTask> task = make_task(session);
  RunObservers observers(session, log, own_log);
  const auto pictures = [&] { return task->pictures(); };
  observers.show(observers::details_of({config.flags.summaries.summary_verbosity, pictures}, trainer));
  RunOptions options = run_options(session);
  if (!session.detector)
    options.advice_on_memory = [&] {
      return cli::advice_on_memory(*session.context, session.store,
                                   {config.machine, config.info, config.options, session.pixels(), config.batch});
    };
  Run run(*task, trainer, session.group, std::move(options), observers.all(), cli::stop_requested);
  const Outcome outcome = run.train();
  report_trained(session, *task, log);
  if (outcome == Outcome::stopped) {
    report_evaluated(session, *task, log);
    log.notice(config.flags.checkpoints.train_dir.empty()
                   ? "stopped on request; nothing is saved without --train_dir"
                   : fmt::format("stopped on request at step {}; the same command resumes from there", run.step()));
    return cli::kStopped;
  }
  if (config.mode == RunMode::training_and_evaluation && outcome != Outcome::enough) run.evaluate();
  report_evaluated(session, *task, log);
  return stop_agreed(session.group, cli::stop_requested) ? cli::kStopped : 0;
}

// The newest checkpoint in `folder`, or `folder` itself.
std::optional<LoadedCheckpoint> load_checkpoint(Session& session, const Task& task, const std::string& folder,
                                                Observer& observer) {
  TrainState expected;
  task.describe(expected);
  std::map<std::string, std::string> must_match;
  for (const char* key : {"model", "classes"}) must_match[key] = expected.identity.at(key);
  // A preprocessing mismatch with training would silently cost accuracy.
  if (!session.config.synthetic()) must_match["preprocessing"] = expected.identity.at("preprocessing");
  return load_newest_checkpoint(folder, must_match, session.store, *session.communicator, session.config.ranks.chief,
                                observer);
}

// --eval: evaluates --weights once, or checkpoints in train_dir: the newest once or every eval_interval_secs, or every
// eval_nth_checkpoints-th.
int evaluate(Session& session, cli::Log& log, Observer* own_log) {
  const Flags& f = session.config.flags;
  const std::unique_ptr<cli::ImageTask> task = make_task(session);
  RunObservers observers(session, log, own_log);
  Observers all(observers.all());
  const auto evaluate_step = [&](uint64_t step, const Tensor& average) {
    const auto result = dtrain::evaluate(*task, session.store, average, session.group, step, f.display.display_every,
                                         all, cli::stop_requested);
    if (result && !std::isfinite(find_metric(result->values, "loss").value_or(0)))
      throw Error(Fault::numeric, "evaluation: the loss is not finite: the model's outputs contain NaN or Inf");
    if (result) report_evaluated(session, *task, log);
    return result.has_value();
  };
  if (!f.checkpoints.weights.empty()) return evaluate_step(0, {}) ? 0 : cli::kStopped;
  const std::string& folder = f.checkpoints.train_dir;
  if (f.mode.eval_nth_checkpoints > 0) {
    for (const std::string& path : kept_checkpoints(folder, static_cast<size_t>(f.mode.eval_nth_checkpoints),
                                                    session.group, session.config.ranks.chief)) {
      const auto loaded = load_checkpoint(session, *task, path, all);
      if (loaded) log.line(fmt::format("Successfully loaded model from {}.", path));
      if (loaded && !evaluate_step(loaded->step, loaded->average)) return cli::kStopped;
    }
    return 0;
  }
  while (true) {
    if (const auto loaded = load_checkpoint(session, *task, folder, all)) {
      log.line(fmt::format("Successfully loaded model from {}.", loaded->path));
      if (!evaluate_step(loaded->step, loaded->average)) break;
    } else if (f.mode.eval_interval_secs > 0) {
      log.line(fmt::format("Checkpoint not found in {}", folder));
    } else {
      throw Error(Fault::checkpoint, fmt::format("Checkpoint not found in {}", folder));
    }
    if (f.mode.eval_interval_secs <= 0) return 0;
    if (cli::stopped_within(session.group, std::chrono::seconds(f.mode.eval_interval_secs))) break;
  }
  return cli::kStopped;
}

// --forward_only: inference on training images, with the newest checkpoint in train_dir, if any; nothing is updated or
// saved.
int run_forward_only(Session& session, cli::Log& log, Observer* own_log) {
  announce_graph(session, log);
  const std::unique_ptr<cli::ImageTask> task = make_task(session);
  RunObservers observers(session, log, own_log);
  Observers all(observers.all());
  if (!session.config.flags.checkpoints.train_dir.empty())
    if (const auto loaded = load_checkpoint(session, *task, session.config.flags.checkpoints.train_dir, all))
      log.line(fmt::format("Successfully loaded model from {}.", loaded->path));
  const Cadence cadence = run_options(session).cadence;
  task->open(0);
  all.begun({});
  for (uint64_t step = 1; step <= session.plan.total_steps; ++step) {
    if ((session.group.size() == 1 || step % cadence.show_every == 0) &&
        stop_agreed(session.group, cli::stop_requested)) {
      report_trained(session, *task, log);
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
  all.ended({Outcome::finished, session.plan.total_steps});
  report_trained(session, *task, log);
  return 0;
}

}  // namespace

void report_trained(const Session& session, const cli::ImageTask& task, cli::Log& log) {
  if (session.config.synthetic()) return;
  const data::LoaderStats all = cli::over_ranks(session.group, task.stats().value_or(data::LoaderStats()));
  cli::report_input(all, session.config.pixels().orientation, session.config.decodes_on_gpu(), log);
}

int run_mode(Session& session, cli::Log& log, Observer* own_log) {
  if (const std::string& file = session.config.flags.graph.graph_file; !file.empty() && session.is_chief())
    observers::write_lines(file, models::list_layers(session.model, session.store));
  switch (session.config.mode) {
    case RunMode::evaluation:
      return evaluate(session, log, own_log);
    case RunMode::forward_only:
      return run_forward_only(session, log, own_log);
    default:
      return session.config.flags.rate_finder.find_learning_rate ? find_learning_rate(session, log)
                                                                 : train(session, log, own_log);
  }
}

}  // namespace dtrain::cnn_benchmarks
