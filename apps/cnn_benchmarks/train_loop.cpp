// The training loop: restore, step, display, save, evaluate, stop.
#include "apps/cnn_benchmarks/train_loop.h"

#include <chrono>

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/display.h"
#include "apps/cnn_benchmarks/evaluate.h"
#include "apps/cnn_benchmarks/steps.h"

namespace dtrain::cnn_benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

// Steps that the device has before it when the host waits for one: its queue never runs empty.
constexpr uint64_t kAhead = 2;

class Training {
 public:
  Training(Session& session, Log& log)
      : session_(session), flags_(session.config.flags), log_(log), steps_(session), state_(session.description()) {}

  int run();

 private:
  void open_train_dir();
  bool ended() const { return state_.step >= session_.plan.total_steps; }
  // False where a stop was requested before the end.
  bool run_steps();
  // Queues a step and tells of those that are done: all, where something is to be done behind it.
  void step(Display& display);
  void tell(Display& display, uint64_t leave);
  void save();
  // Behind step `step`.
  bool save_is_due(uint64_t step) const;
  // True where the accuracy asked for has been reached.
  bool evaluate_now(const char* what);
  void report_faults() const;

  Session& session_;
  const Flags& flags_;
  Log& log_;
  Steps steps_;
  TrainState state_;                         // of the last step told of
  std::optional<Checkpointer> checkpoints_;  // with a train_dir
  Clock::time_point saved_at_ = Clock::now();
  bool reached_accuracy_ = false;
  bool save_due_ = false;  // behind the last queued step
  uint64_t skipped_ = 0;
  float loss_scale_ = 1;
};

void Training::open_train_dir() {
  if (flags_.train_dir.empty()) return;
  CheckpointOptions options;
  options.train_dir = flags_.train_dir;
  options.keep = static_cast<int>(flags_.max_ckpts_to_keep);
  checkpoints_.emplace(session_.store, options, [this](const std::string& text) { log_.notice(text); });

  std::optional<RestoreReport> restored;
  if (flags_.resume == "never") {
    const auto latest = checkpoints_->latest();
    DT_CHECK(!latest, "--resume=never: ", *latest, " is there; choose another --train_dir or --resume=auto");
  } else if (flags_.resume == "auto") {
    restored = checkpoints_->restore_latest(state_);
  } else {
    restored = checkpoints_->restore(flags_.resume, state_);
  }
  if (!restored) return;
  for (const std::string& notice : restored->notices) log_.notice(notice);
  log_.line(fmt::format("Restored step {} from {}", restored->state.step, restored->path));
  if (!flags_.weights.empty()) log_.notice("--weights has no effect: the run goes on from its checkpoint");
  state_.step = restored->state.step;
  state_.cursor = restored->state.cursor;
  steps_.resume(restored->state);
}

int Training::run() {
  log_.line("Initializing graph");
  open_train_dir();
  if (!session_.weights_summary.empty() && state_.step == 0)
    log_.line(fmt::format("Weights:     {} ({})", flags_.weights, session_.weights_summary));
  log_.line(fmt::format("Schedule:    {}", session_.plan.schedule.describe()));
  log_.line(fmt::format("Update:      {}", steps_.describe_update()));
  if (ended()) {
    log_.notice(fmt::format("step {} is the end of the run already; a larger --num_batches or --num_epochs goes on",
                            state_.step));
  } else if (!run_steps()) {
    log_.notice(checkpoints_
                    ? fmt::format("stopped on request at step {}; the same command goes on from there", state_.step)
                    : "stopped on request; without --train_dir nothing is saved");
    return cli::kStopped;
  }
  if (session_.config.mode == RunMode::training_and_evaluation && !reached_accuracy_) evaluate_now("Running final");
  return cli::stop_requested() ? cli::kStopped : 0;
}

bool Training::run_steps() {
  Display display(session_, log_, state_.step);
  while (!ended() && !cli::stop_requested() && !reached_accuracy_) {
    step(display);
    if (steps_.queued() != state_.step) continue;
    if (save_due_) save();
    if (session_.plan.eval_steps.contains(state_.step) && !ended()) reached_accuracy_ = evaluate_now("Running");
  }
  tell(display, 0);
  if (checkpoints_ && state_.step > 0) {
    save();
    if (!checkpoints_->wait()) throw Error(Fault::resource, "the last checkpoint could not be written; see above");
  }
  if (!ended() && !reached_accuracy_) return false;
  display.finish();
  report_faults();
  return true;
}

void Training::step(Display& display) {
  display.begin_step();
  steps_.queue(display.shows(steps_.queued() + 1));
  const uint64_t step = steps_.queued();
  save_due_ = save_is_due(step);
  const bool pauses = save_due_ || step >= session_.plan.total_steps || session_.plan.eval_steps.contains(step);
  tell(display, pauses ? 0 : kAhead);
}

void Training::tell(Display& display, uint64_t leave) {
  for (const StepFigures& figures : steps_.finished(leave)) {
    state_.step = figures.step;
    skipped_ = figures.skipped;
    loss_scale_ = figures.loss_scale;
    display.end_step(figures);
  }
}

bool Training::save_is_due(uint64_t step) const {
  if (!checkpoints_ || step >= session_.plan.total_steps) return false;
  if (flags_.save_model_steps) return step % static_cast<uint64_t>(*flags_.save_model_steps) == 0;
  return flags_.save_model_secs > 0 && Clock::now() - saved_at_ >= std::chrono::seconds(flags_.save_model_secs);
}

void Training::save() {
  steps_.describe(state_);
  checkpoints_->save(state_);
  saved_at_ = Clock::now();
}

bool Training::evaluate_now(const char* what) {
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
  if (!stats || (stats->bad_records == 0 && stats->damaged_images == 0)) return;
  log_.notice(fmt::format("{} bad records skipped, {} damaged images used", stats->bad_records, stats->damaged_images));
  for (const std::string& fault : stats->faults) log_.notice(fault);
}

}  // namespace

int run_training(Session& session, Log& log) { return Training(session, log).run(); }

}  // namespace dtrain::cnn_benchmarks
