// The training loop: restore, step, display, save, evaluate, stop.
#include "apps/cnn_benchmarks/train_loop.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/display.h"
#include "apps/cnn_benchmarks/evaluate.h"
#include "libdtrain/train/trainer.h"

namespace dtrain::cnn_benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

TrainerOptions trainer_options(const Config& config) {
  TrainerOptions options;
  options.micro_steps = static_cast<int>(config.flags.gradient_accumulation);
  options.seed = static_cast<uint64_t>(config.flags.tf_random_seed);
  return options;
}

class Training {
 public:
  Training(Session& session, Log& log)
      : session_(session),
        flags_(session.config.flags),
        log_(log),
        optimizer_(session.store, optimizer_options(flags_)),
        trainer_(session.store, optimizer_, session.plan.schedule, trainer_options(session.config)),
        state_(session.description()) {}

  int run();

 private:
  void open_train_dir();
  bool ended() const { return state_.step >= session_.plan.total_steps; }
  // False where a stop was requested before the end.
  bool run_steps();
  void step(Display& display);
  void save();
  bool save_is_due() const;
  // True where the accuracy asked for has been reached.
  bool evaluate_now(const char* what);
  [[noreturn]] void report_divergence(const StepReport& report) const;
  void report_faults() const;

  Session& session_;
  const Flags& flags_;
  Log& log_;
  Optimizer optimizer_;
  Trainer trainer_;
  TrainState state_;
  std::optional<Checkpointer> checkpoints_;  // with a train_dir
  std::optional<Input> input_;
  std::vector<uint64_t> samples_;  // of the step under way
  Clock::time_point saved_at_ = Clock::now();
  bool reached_accuracy_ = false;
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
  trainer_.resume(state_.step, restored->state.device);
}

int Training::run() {
  log_.line("Initializing graph");
  open_train_dir();
  if (!session_.weights_summary.empty() && state_.step == 0)
    log_.line(fmt::format("Weights:     {} ({})", flags_.weights, session_.weights_summary));
  log_.line(fmt::format("Schedule:    {}", session_.plan.schedule.describe()));
  log_.line(fmt::format("Update:      {}", optimizer_.describe()));
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
  input_ = Input::training(*session_.context, session_.config, session_.datasets, state_.cursor);
  Display display(session_, log_, state_.step);
  while (!ended() && !cli::stop_requested() && !reached_accuracy_) {
    step(display);
    if (save_is_due()) save();
    if (session_.plan.eval_steps.contains(state_.step) && !ended()) reached_accuracy_ = evaluate_now("Running");
  }
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
  StepFigures figures;
  // The L2 term of the parameters that the loss is of: before the update.
  if (display.shows(state_.step + 1)) figures.l2 = optimizer_.l2_loss();
  samples_.clear();
  const StepReport report = trainer_.step([&](Tape& tape, int) {
    const data::Batch* batch = input_->next();
    samples_.insert(samples_.end(), batch->samples.begin(), batch->samples.end());
    state_.cursor = batch->cursor;
    return session_.forward(tape, *batch);
  });
  if (!report.finite) report_divergence(report);
  state_.step = report.step;
  figures.step = report.step;
  figures.loss = report.loss;
  figures.learning_rate = report.learning_rate;
  figures.accuracy = {report.top_1, report.top_5, static_cast<uint64_t>(session_.config.global_batch())};
  figures.wait_seconds = input_->wait_seconds();
  display.end_step(figures);
}

void Training::report_divergence(const StepReport& report) const {
  throw Error(Fault::numeric,
              fmt::format("step {}: not finite: loss {}, learning rate {}, worst layer {}, samples {}; the update was "
                          "not applied; a lower --init_learning_rate or --gradient_clip_norm may help",
                          report.step, std::isnan(report.loss) ? std::abs(report.loss) : report.loss,
                          report.learning_rate, trainer_.worst_parameter(),
                          samples_.empty() ? "synthetic" : fmt::format("{}", fmt::join(samples_, " "))));
}

bool Training::save_is_due() const {
  if (!checkpoints_ || ended()) return false;
  if (flags_.save_model_steps) return state_.step % static_cast<uint64_t>(*flags_.save_model_steps) == 0;
  return flags_.save_model_secs > 0 && Clock::now() - saved_at_ >= std::chrono::seconds(flags_.save_model_secs);
}

void Training::save() {
  state_.device = trainer_.step_state();
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
  const auto stats = input_->stats();
  if (!stats || (stats->bad_records == 0 && stats->damaged_images == 0)) return;
  log_.notice(fmt::format("{} bad records skipped, {} damaged images used", stats->bad_records, stats->damaged_images));
  for (const std::string& fault : stats->faults) log_.notice(fault);
}

}  // namespace

int run_training(Session& session, Log& log) { return Training(session, log).run(); }

}  // namespace dtrain::cnn_benchmarks
