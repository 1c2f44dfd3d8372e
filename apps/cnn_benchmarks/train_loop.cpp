// The training loop: restore, step, display, save, evaluate, stop.
#include "apps/cnn_benchmarks/train_loop.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "apps/cli/rank_table.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/checkpoints.h"
#include "apps/cnn_benchmarks/display.h"
#include "apps/cnn_benchmarks/evaluate.h"
#include "apps/cnn_benchmarks/steps.h"
#include "libdtrain/distributed/stragglers.h"

namespace dtrain::cnn_benchmarks {
namespace {

// Steps that the device has before it when the host waits for one: its queue never runs empty.
constexpr uint64_t kAhead = 2;

class Training {
 public:
  Training(Session& session, Log& log)
      : session_(session),
        flags_(session.config.flags),
        log_(log),
        steps_(session),
        checkpoints_(session, log),
        state_(session.description()) {}

  int run();

 private:
  bool ended() const { return state_.step >= session_.plan.total_steps; }
  bool stopping() const {
    if (session_.group.size() == 1) return cli::stop_requested();
    return stop_behind_ && state_.step >= *stop_behind_;
  }
  // False where a stop was requested before the end.
  bool run_steps();
  void loop(Display& display);
  // Queues a step and tells of those that are done: all, where something is to be done behind it.
  void step(Display& display);
  void tell(Display& display, uint64_t leave);
  // True where the accuracy asked for has been reached.
  bool evaluate_now(const char* what);
  // What the ranks took for their own parts of the last steps, told to all.
  void compare_speeds();
  void report_faults() const;

  Session& session_;
  const Flags& flags_;
  Log& log_;
  Steps steps_;
  Checkpoints checkpoints_;
  TrainState state_;  // of the last step told of
  bool reached_accuracy_ = false;
  bool save_due_ = false;                // behind the last queued step
  std::optional<uint64_t> stop_behind_;  // a step that all ranks know of
  uint64_t first_step_ = 1;              // of this run
  Stragglers stragglers_;
  // Of the steps told of since ranks compared their speeds: seconds of their own, and of these the device stood idle.
  double own_seconds_ = 0, idle_seconds_ = 0;
  uint64_t own_steps_ = 0;
  double compared_for_ = 0;  // seconds that the last comparison took, for which a device may have stood idle
  uint64_t skipped_ = 0;
  float loss_scale_ = 1;
};

int Training::run() {
  log_.line("Initializing graph");
  if (session_.group.size() > 1)
    for (const std::string& line : cli::rank_table(session_.group, session_.config.machine)) log_.line(line);
  checkpoints_.restore(state_, steps_);
  if (!session_.weights_summary.empty() && state_.step == 0)
    log_.line(fmt::format("Weights:     {} ({})", flags_.weights, session_.weights_summary));
  log_.line(fmt::format("Schedule:    {}", session_.plan.schedule.describe()));
  log_.line(fmt::format("Update:      {}", steps_.describe_update()));
  if (ended()) {
    log_.notice(fmt::format("step {} is the end of the run already; a larger --num_batches or --num_epochs goes on",
                            state_.step));
  } else if (!run_steps()) {
    log_.notice(checkpoints_.has_directory()
                    ? fmt::format("stopped on request at step {}; the same command goes on from there", state_.step)
                    : "stopped on request; without --train_dir nothing is saved");
    return cli::kStopped;
  }
  if (session_.config.mode == RunMode::training_and_evaluation && !reached_accuracy_) evaluate_now("Running final");
  return stop_agreed(session_.group) ? cli::kStopped : 0;
}

bool Training::run_steps() {
  Display display(session_, log_, state_.step);
  first_step_ = state_.step + 1;
  try {
    loop(display);
  } catch (const Error& error) {
    checkpoints_.failed(error);
    throw;
  }
  if (checkpoints_.has_directory() && state_.step > 0) checkpoints_.save_last(state_, steps_);
  if (!ended() && !reached_accuracy_) return false;
  display.finish();
  report_faults();
  return true;
}

void Training::loop(Display& display) {
  while (!ended() && !stopping() && !reached_accuracy_) {
    step(display);
    if (steps_.queued() != state_.step) continue;
    if (checkpoints_.verification_is_due(state_.step)) checkpoints_.verify(state_.step);
    if (save_due_) checkpoints_.save(state_, steps_);
    if (session_.plan.eval_steps.contains(state_.step) && !ended()) reached_accuracy_ = evaluate_now("Running");
  }
  tell(display, 0);
}

void Training::step(Display& display) {
  const uint64_t step = steps_.queued() + 1;
  // In the first steps libraries choose their algorithms; then a GPU's are recorded.
  const bool first = step <= first_step_ + (session_.context->is_cpu() ? 0 : Trainer::kEagerSteps);
  session_.group.enter(first ? Section::setup : Section::step, step);
  display.begin_step();
  steps_.queue(display.shows(step), cli::stop_requested());
  if (session_.group.size() > 1 && display.shows(step)) compare_speeds();
  save_due_ = checkpoints_.save_is_due(step);
  const bool pauses = save_due_ || step >= session_.plan.total_steps || session_.plan.eval_steps.contains(step) ||
                      checkpoints_.verification_is_due(step) || stop_behind_ == step;
  tell(display, pauses ? 0 : kAhead);
}

void Training::tell(Display& display, uint64_t leave) {
  for (StepFigures& figures : steps_.finished(leave)) {
    checkpoints_.step_done();
    own_seconds_ += figures.own_seconds;
    idle_seconds_ += figures.times.before;
    ++own_steps_;
    figures.slowest = stragglers_.slowest();
    state_.step = figures.step;
    skipped_ = figures.skipped;
    loss_scale_ = figures.loss_scale;
    display.end_step(figures);
    // Ranks hear of this step's figures when they have queued kAhead more at the latest.
    if (figures.requests > 0 && !stop_behind_) stop_behind_ = figures.step + (session_.context->is_cpu() ? 0 : kAhead);
  }
}

// Behind a step that has been queued, as all ranks are then at the same place; those told of are before it.
void Training::compare_speeds() {
  const double own = own_seconds_ - std::min(idle_seconds_, compared_for_);
  const double mine = own_steps_ == 0 ? 0 : own / static_cast<double>(own_steps_);
  own_seconds_ = idle_seconds_ = 0;
  own_steps_ = 0;
  const auto began = std::chrono::steady_clock::now();
  std::vector<double> seconds;
  for (const std::string& text : session_.group.all_gather(fmt::format("{}", mine), "speed of the ranks"))
    seconds.push_back(std::stod(text));
  compared_for_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const Straggler& slow : stragglers_.add(seconds))
    log_.notice(
        fmt::format("{} is slow: it takes {:.1f} times as long as the median rank for its part of a step, and "
                    "all wait for it",
                    session_.group.name(slow.rank), slow.factor));
}

bool Training::evaluate_now(const char* what) {
  session_.group.enter(Section::evaluation, state_.step);
  log_.line(fmt::format("{} evaluation at global_step {}", what, state_.step));
  const std::optional<Accuracy> result = evaluate(session_, log_);
  if (result && flags_.stop_at_top_1_accuracy && result->top_1 >= *flags_.stop_at_top_1_accuracy) {
    log_.line(fmt::format("Stopping, as eval accuracy at least {} was reached", *flags_.stop_at_top_1_accuracy));
    return true;
  }
  if (result && !ended()) log_.line("Resuming training");
  return false;
}

void Training::report_faults() const {
  if (skipped_ > 0)
    log_.notice(fmt::format("{} updates skipped to lower the loss scale, which ended at {}", skipped_, loss_scale_));
  const auto stats = steps_.data_stats();
  if (stats && session_.config.decodes_on_gpu())
    log_.notice(fmt::format("--jpeg_decoder=gpu: {} of {} images were decoded by the host",
                            stats->records - stats->deferred, stats->records));
  if (!stats || (stats->bad_records == 0 && stats->damaged_images == 0)) return;
  log_.notice(fmt::format("{} bad records skipped, {} damaged images used", stats->bad_records, stats->damaged_images));
  for (const std::string& fault : stats->faults) log_.notice(fault);
}

}  // namespace

int run_training(Session& session, Log& log) { return Training(session, log).run(); }

}  // namespace dtrain::cnn_benchmarks
