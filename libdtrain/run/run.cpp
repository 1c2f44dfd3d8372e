// Main loop: restore, step, report, save, evaluate, stop.
#include "dtrain/run/run.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "dtrain/run/evaluation.h"
#include "libdtrain/run/checkpoints.h"
#include "libdtrain/run/evaluation_record.h"
#include "libdtrain/run/faults.h"
#include "libdtrain/run/speeds.h"
#include "libdtrain/run/steps.h"
#include "libdtrain/train/agreement.h"

namespace dtrain {
namespace {

using Clock = std::chrono::steady_clock;

// Steps in flight while the host waits for one: the stream never runs empty.
constexpr uint64_t kAhead = 2;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

class Run::Training {
 public:
  Training(Task& task, Trainer& trainer, Group& group, RunOptions options, std::vector<Observer*> observers,
           std::function<bool()> stop);

  Outcome train();
  std::optional<Evaluation> evaluate();
  uint64_t step() const { return state_.step; }

 private:
  void describe();
  int64_t show_every() const { return static_cast<int64_t>(options_.cadence.show_every); }
  bool ended() const { return state_.step >= options_.cadence.total_steps; }
  // Whether this rank requests a stop.
  bool asks() const { return enough_later_ || (stop_ && stop_()); }
  bool stopping() const {
    if (group_.size() == 1) return asks();
    return stop_after_ && steps_.enqueued() >= *stop_after_;
  }
  Outcome make_steps();
  void loop();
  // Enqueues a step and reports finished ones; waits for all if other work follows it.
  void make_step();
  void report(uint64_t leave);
  Stepped event_of(const Steps::Done& done, double seconds);
  void pass_on_notices();
  std::future<Evaluation> begin_evaluations();
  void evaluate_now();
  // Reports the result of the pending evaluation, if available or with `wait`; returns whether training ends.
  bool take_evaluation(bool wait);
  // Records an evaluation and ranks it among the others.
  void judge(Evaluated& event);
  // Applies the consequences of earlier evaluations at a resume.
  void follow_up();
  // Saves the evaluated parameters.
  void save_evaluated();

  Task& task_;
  Trainer& trainer_;
  Group& group_;
  const RunOptions options_;
  Observers observers_;
  const std::function<bool()> stop_;
  RunCheckpoints checkpoints_;
  Steps steps_;
  RankSpeeds speeds_;
  EvaluationRecord record_;
  TrainState state_;  // after the last reported step
  bool started_ = false;
  bool enough_ = false;                 // an evaluation was good enough; known to all ranks
  bool enough_later_ = false;           // an asynchronous one was; known to this rank
  bool came_later_ = false;             // some result was asynchronous; known to all ranks
  bool save_due_ = false;               // after the last enqueued step
  std::optional<uint64_t> stop_after_;  // known to all ranks
  uint64_t first_step_ = 1;             // first step of this run
  Clock::time_point step_began_;
  uint64_t skipped_ = 0;
  float loss_scale_ = 1;
  std::future<Evaluation> evaluation_;  // asynchronous evaluation in progress
  uint64_t evaluated_step_ = 0;
};

Run::Training::Training(Task& task, Trainer& trainer, Group& group, RunOptions options,
                        std::vector<Observer*> observers, std::function<bool()> stop)
    : task_(task),
      trainer_(trainer),
      group_(group),
      options_(std::move(options)),
      observers_(std::move(observers)),
      stop_(std::move(stop)),
      checkpoints_(options_, trainer, group, observers_),
      steps_(task, trainer, group, options_),
      speeds_(group),
      record_(options_.follow, options_.train_dir) {
  DT_CHECK(options_.cadence.show_every >= 1, "run: steps are shown every ", options_.cadence.show_every,
           " steps; expected 1 or more");
  DT_CHECK(options_.batch >= 1, "run: a batch of ", options_.batch,
           " samples; expected RunOptions::batch, the samples of a rank and micro-step");
  DT_CHECK(trainer.options().micro_steps <= task.micro_steps(), "run: ", trainer.options().micro_steps,
           " micro-steps, and the task keeps the batches of ", task.micro_steps(),
           " apart; expected a task that keeps as many batches, by the micro-step that load() and forward() are given, "
           "and says so to Task's constructor");
  DT_CHECK(options_.chief >= 0 && options_.chief < group.size(), "run: the chief is rank ", options_.chief, " of ",
           group.size());
  DT_CHECK(
      group.size() == 1 || (trainer.options().communicator && trainer.options().communicator->size() == group.size()),
      "run: a job of ", group.size(), " ranks needs a trainer with a communicator of as many");
  if (group.size() > 1)
    check_equal(group,
                {{"the batch size of a rank", fmt::format("{}", options_.batch)},
                 {"the number of steps", fmt::format("{}", options_.cadence.total_steps)},
                 {"the chief", fmt::format("{}", options_.chief)}},
                "run");
  describe();
}

// Adds settings that the task has not given.
void Run::Training::describe() {
  const Context& context = trainer_.store().context();
  const TrainerOptions& trainer = trainer_.options();
  task_.describe(state_);
  state_.identity.emplace("global batch", fmt::format("{}", options_.batch * trainer.micro_steps * group_.size()));
  state_.identity.emplace("seed", fmt::format("{}", trainer.seed));
  auto& settings = state_.settings;
  settings.emplace("learning rate", trainer_.schedule().describe());
  settings.emplace("ranks", fmt::format("{}", group_.size()));
  settings.emplace("batch size of a rank", fmt::format("{}", options_.batch));
  settings.emplace("device", context.is_cpu() ? "cpu" : "gpu");
  settings.emplace("compute threads", fmt::format("{}", context.threads()));
  if (context.is_cpu()) settings.emplace("instruction set", name_of(context.isa()));
  if (trainer.communicator) settings.emplace("sums over ranks", trainer.communicator->describe());
  if (group_.size() > 1) steps_.describe_sums(state_);
}

Outcome Run::Training::train() {
  DT_CHECK(!started_, "run: train() called twice; a further run needs another Run");
  DT_CHECK(options_.cadence.total_steps >= 1,
           "run: no steps to train; expected Cadence::total_steps of at least 1, those of a checkpoint included");
  started_ = true;
  const std::string restored = checkpoints_.restore(state_);
  const std::string record_lost = record_.restore(group_, options_.chief, state_.step);
  steps_.resume(state_);
  observers_.begun({state_.step, restored, ended(), trainer_.schedule().describe(), trainer_.optimizer().describe(),
                    state_.identity, state_.settings});
  pass_on_notices();
  if (!record_lost.empty()) observers_.noticed({record_lost});
  if (const StepState& saved = state_.device;
      !restored.empty() && saved.double_after > 0 && trainer_.options().double_loss_scale_after > 0)
    observers_.noticed(
        {fmt::format("the loss scale continues at {}, after {} good steps; {} updates were skipped so far",
                     saved.loss_scale, saved.good_steps, saved.skipped)});
  if (ended()) {
    observers_.noticed({fmt::format("step {} is the end of the run already; a larger number of steps would continue it",
                                    state_.step)});
    return Outcome::finished;
  }
  Outcome outcome;
  try {
    outcome = make_steps();
  } catch (const std::exception& error) {
    checkpoints_.failed(error, steps_.enqueued());
    checkpoints_.report();
    throw;
  }
  if (skipped_ > 0)
    observers_.noticed(
        {fmt::format("{} updates were skipped to lower the loss scale, which ended at {}", skipped_, loss_scale_)});
  observers_.ended({outcome, state_.step});
  return outcome;
}

Outcome Run::Training::make_steps() {
  first_step_ = state_.step + 1;
  checkpoints_.begin_steps();
  follow_up();
  loop();
  if (checkpoints_.has_directory() && state_.step > 0) {
    steps_.describe(state_);
    checkpoints_.save_last(state_);
  }
  if (came_later_) {  // other ranks wait for the chief's result, up to the timeout of evaluations
    group_.enter(Section::evaluation, state_.step);
    take_evaluation(/*wait=*/true);
    enough_ = group_.extremes(enough_later_ ? 1 : 0, "result of the evaluation").second > 0;
  }
  return enough_ ? Outcome::enough : ended() ? Outcome::finished : Outcome::stopped;
}

void Run::Training::loop() {
  while (!ended() && !stopping() && !enough_) {
    make_step();
    if (steps_.enqueued() != state_.step) continue;
    if (checkpoints_.verification_is_due(state_.step)) checkpoints_.verify(state_.step);
    if (save_due_) {
      steps_.describe(state_);
      checkpoints_.save_or_skip(state_);
    }
    if (options_.cadence.evaluates(state_.step) && !ended()) evaluate_now();
  }
  report(0);
}

void Run::Training::make_step() {
  const uint64_t step = steps_.enqueued() + 1;
  const bool shown = options_.cadence.shows(step, first_step_);
  trainer_.enter_step();
  observers_.stepping(step);
  if (steps_.enqueued() == state_.step) step_began_ = Clock::now();
  steps_.enqueue(shown, asks());
  if (group_.size() > 1 && shown)
    for (std::string& slow : speeds_.compare()) observers_.noticed({std::move(slow)});
  save_due_ = checkpoints_.save_is_due(step);
  const bool pauses = save_due_ || step >= options_.cadence.total_steps || options_.cadence.evaluates(step) ||
                      options_.cadence.inspects(step) || checkpoints_.verification_is_due(step);
  report(pauses ? 0 : kAhead);
}

void Run::Training::report(uint64_t leave) {
  const std::vector<Steps::Done> finished = steps_.finished(leave);
  const Clock::time_point now = Clock::now();
  // Steps found done together share the time equally: the host did not observe each.
  const double seconds = seconds_between(step_began_, now) / std::max<double>(1, static_cast<double>(finished.size()));
  if (!finished.empty()) step_began_ = now;
  for (const Steps::Done& done : finished) {
    checkpoints_.step_done();
    speeds_.add(done.own_seconds, done.report.times.before);
    state_.step = done.report.step;
    skipped_ = done.report.skipped;
    loss_scale_ = done.report.loss_scale;
    observers_.stepped(event_of(done, seconds));
    pass_on_notices();
    // Requests of a step are known to all ranks at most kAhead enqueued steps later.
    if (done.report.requests > 0 && !stop_after_)
      stop_after_ = done.report.step + (trainer_.store().context().is_cpu() ? 0 : kAhead);
  }
  checkpoints_.report();
  take_evaluation(/*wait=*/false);
}

Stepped Run::Training::event_of(const Steps::Done& done, double seconds) {
  const StepReport& report = done.report;
  Stepped event{.step = report.step,
                .shown = options_.cadence.shows(report.step, first_step_),
                .loss = report.loss,
                .l2_loss = report.l2_loss,
                .metrics = report.metrics,
                .learning_rate = report.learning_rate,
                .gradient_norm = report.gradient_norm,
                .seconds = seconds,
                .more_under_way = steps_.enqueued() > report.step,
                .wait_seconds = done.wait_seconds,
                .times = report.times,
                .slowest = speeds_.slowest(),
                .rank_seconds = speeds_.seconds(),
                .bytes = report.bytes,
                .loss_scale = report.loss_scale,
                .skipped = report.skipped};
  if (trainer_.options().communicator) event.sums = trainer_.options().communicator->take_times();
  return event;
}

void Run::Training::pass_on_notices() {
  std::vector<std::string>& notices = trainer_.store().context().notices();
  for (const std::string& text : notices) observers_.noticed({text});
  notices.clear();
}

std::future<Evaluation> Run::Training::begin_evaluations() {
  return dtrain::begin_evaluations(task_, trainer_.store(), trainer_.optimizer().average(), group_, state_.step,
                                   show_every(), observers_, stop_);
}

// An asynchronous result may exist on the chief only, which then requests a stop like a signal does. It may also be
// ready at once: so ranks agree on the consequences of any result.
void Run::Training::evaluate_now() {
  take_evaluation(/*wait=*/true);
  group_.enter(Section::evaluation, state_.step);
  evaluated_step_ = state_.step;
  evaluation_ = begin_evaluations();
  pass_on_notices();
  if (!evaluation_.valid()) return;
  const bool later = group_.extremes(is_ready(evaluation_) ? 0 : 1, "state of the evaluation").second > 0;
  if (later) {
    came_later_ = true;
    if (options_.follow.keep_best) {
      checkpoints_.keep_candidate(state_.step);
      save_evaluated();
    }
    return;
  }
  const bool ends = take_evaluation(/*wait=*/true);
  enough_ = group_.extremes(ends ? 1 : 0, "result of the evaluation").second > 0;
  if (!options_.follow.keep_best) return;
  const auto best = record_.best();
  const bool is_best = best && best->step == state_.step;
  if (group_.extremes(is_best ? 1 : 0, "best evaluation").second > 0) save_evaluated();
}

void Run::Training::save_evaluated() {
  steps_.describe(state_);
  checkpoints_.save(state_);
}

void Run::Training::follow_up() {
  if (!record_.follows() || state_.step == 0) return;
  if (const auto best = record_.best(); best && options_.follow.keep_best) checkpoints_.keep_best(best->step);
  if (!record_.holds(state_.step) && options_.cadence.evaluates(state_.step)) return evaluate_now();
  enough_ = record_.stalls();
  if (enough_) observers_.noticed({"training is over: " + record_.describe_stall()});
}

void Run::Training::judge(Evaluated& event) {
  if (!record_.follows() || !started_ || event.result.values.empty()) return;
  record_.add(event.step, event.result, group_.rank() == options_.chief);
  if (options_.faults) options_.faults->evaluated(event.step);
  const auto best = record_.best();
  event.best = best && best->step == event.step;
  event.stalls = record_.stalls();
  if (event.best && options_.follow.keep_best) checkpoints_.keep_best(event.step);
}

bool Run::Training::take_evaluation(bool wait) {
  if (!evaluation_.valid() || (!wait && !is_ready(evaluation_))) return false;
  Evaluated event{.step = evaluated_step_, .result = evaluation_.get()};
  event.suffices = options_.enough && options_.enough(event.result);
  judge(event);
  const bool ends = event.suffices || event.stalls;
  event.resumes = !ends && !ended();
  if (came_later_) enough_later_ = enough_later_ || ends;
  observers_.evaluated(event);
  if (event.stalls) observers_.noticed({"training ends early: " + record_.describe_stall()});
  return ends;
}

std::optional<Evaluation> Run::Training::evaluate() {
  group_.enter(Section::evaluation, state_.step);
  std::future<Evaluation> result = begin_evaluations();
  if (!result.valid()) return std::nullopt;
  Evaluation evaluation = result.get();
  Evaluated event{.step = state_.step, .result = evaluation};
  judge(event);
  observers_.evaluated(event);
  return evaluation;
}

Run::Run(Task& task, Trainer& trainer, Group& group, RunOptions options, std::vector<Observer*> observers,
         std::function<bool()> stop)
    : training_(std::make_unique<Training>(task, trainer, group, std::move(options), std::move(observers),
                                           std::move(stop))) {}

Run::~Run() = default;

Outcome Run::train() { return training_->train(); }
std::optional<Evaluation> Run::evaluate() { return training_->evaluate(); }
uint64_t Run::step() const { return training_->step(); }

}  // namespace dtrain
