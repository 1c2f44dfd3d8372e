// Speeds are tf_cnn_benchmarks': a step's time includes the wait for its data; the total's includes checkpoints.
#include "apps/cnn_benchmarks/display.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain::cnn_benchmarks {
namespace {

std::optional<double> moving_average(const Flags& f) {
  return f.display_perf_ewma && *f.display_perf_ewma > 0 ? f.display_perf_ewma : std::nullopt;
}

// With Horovod tf_cnn_benchmarks' lines are about a process, its total about all; else all is about all.
double batch_of_a_line(const Config& config) {
  const int64_t ranks = config.flags.variable_update == "horovod" ? config.ranks.size : 1;
  return static_cast<double>(config.global_batch() / ranks);
}

void add(const StepTimes& times, StepTimes& sum) {
  sum.step += times.step;
  sum.before += times.before;
  sum.forward += times.forward;
  sum.backward += times.backward;
  sum.reduce += times.reduce;
  sum.update += times.update;
}

}  // namespace

Display::Display(const Session& session, Log& log, uint64_t done)
    : session_(session),
      log_(log),
      speed_(batch_of_a_line(session.config), moving_average(session.config.flags)),
      first_(done + 1),
      step_(done),
      warmup_(static_cast<uint64_t>(session.config.warmup_steps)),
      first_timed_(std::max(done, warmup_) + 1),
      shown_step_(done) {
  const std::string& path = session.config.flags.metrics_file;
  if (!path.empty() && session.is_chief()) metrics_.emplace(path, done);
  log_.line("Running warm up");
}

bool Display::shows(uint64_t step) const {
  if (step <= warmup_) return false;
  return (step - warmup_) % static_cast<uint64_t>(session_.config.flags.display_every) == 0 || step == first_timed_;
}

void Display::begin_timing() {
  const Flags& f = session_.config.flags;
  log_.line("Done warm up");
  log_.columns(f.loss_type_to_report, f.print_training_accuracy || f.forward_only);
  timing_ = true;
  timing_began_ = Clock::now();
  timed_wait_ = shown_wait_ = wait_;
  shown_step_ = step_;
}

void Display::begin_step() {
  if (under_way_++ > 0) return;
  if (!timing_ && step_ >= warmup_) begin_timing();
  step_began_ = Clock::now();
}

void Display::end_step(const StepFigures& figures) {
  const bool shown = shows(figures.step);
  step_ = figures.step;
  wait_ = figures.wait_seconds;
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - step_began_).count();
  step_began_ = now;
  --under_way_;
  log_.notices(*session_.context);
  if (session_.config.sums()) add_sums(figures);
  if (!timing_) {
    if (step_ >= warmup_ && under_way_ > 0) begin_timing();
    return;
  }
  speed_.add(seconds);
  add(figures.times, times_);
  bytes_ = figures.bytes;
  if (!shown) return;

  const Flags& f = session_.config.flags;
  const double total = figures.loss + figures.l2;
  const bool accuracies = f.print_training_accuracy || f.forward_only;
  const int64_t number = static_cast<int64_t>(step_ - warmup_);
  log_.step(number, speed_, f.loss_type_to_report == "base_loss" ? figures.loss : total,
            accuracies ? std::optional(figures.accuracy) : std::nullopt);
  if (metrics_) append_metrics(figures, total);
  shown_step_ = step_;
  shown_wait_ = wait_;
  shown_times_ = times_;
}

// What the first step took says nothing of the others: memory and connections are made in it.
void Display::add_sums(const StepFigures& figures) {
  const CommunicatorTimes times = session_.communicator->take_times();
  if (step_ == first_ || times.bytes == 0) return;
  sums_.times.busy += times.busy;
  sums_.times.exposed += times.exposed;
  sums_.times.bytes += times.bytes;
  sums_.step_seconds += figures.times.step;
  ++sums_.steps;
}

void Display::append_metrics(const StepFigures& figures, double total_loss) {
  const double wait_ms = 1e3 * (wait_ - shown_wait_) / static_cast<double>(step_ - shown_step_);
  MetricsFile::Fields fields{{"loss", figures.loss},
                             {"total_loss", total_loss},
                             {"learning_rate", figures.learning_rate},
                             {"top_1_accuracy", figures.accuracy.top_1},
                             {"top_5_accuracy", figures.accuracy.top_5},
                             {"images_per_sec", speed_.speed()},
                             {"data_wait_ms", wait_ms}};
  const auto add_time = [&](const char* name, double StepTimes::*part) {
    fields.emplace_back(name, 1e3 * (times_.*part - shown_times_.*part) / static_cast<double>(step_ - shown_step_));
  };
  add_time("forward_ms", &StepTimes::forward);
  add_time("backward_ms", &StepTimes::backward);
  if (session_.config.sums()) add_time("wait_for_sums_ms", &StepTimes::reduce);
  add_time("update_ms", &StepTimes::update);
  if (session_.config.machine.gpu) add_time("between_steps_ms", &StepTimes::before);
  if (session_.config.machine.precision == DType::f16) {
    fields.emplace_back("loss_scale", figures.loss_scale);
    fields.emplace_back("skipped_updates", static_cast<double>(figures.skipped));
  }
  if (figures.slowest.factor > 0) {
    fields.emplace_back("slowest_rank", figures.slowest.rank);
    fields.emplace_back("slowest_rank_factor", figures.slowest.factor);
  }
  if (sums_.steps > shown_sums_.steps) {
    const auto steps = static_cast<double>(sums_.steps - shown_sums_.steps);
    const CommunicatorTimes &now = sums_.times, &before = shown_sums_.times;
    fields.emplace_back("all_reduce_ms", 1e3 * (now.busy - before.busy) / steps);
    fields.emplace_back("all_reduce_exposed_ms", 1e3 * (now.exposed - before.exposed) / steps);
    fields.emplace_back("all_reduce_bytes", (now.bytes - before.bytes) / steps);
    shown_sums_ = sums_;
  }
  try {
    metrics_->append(step_, fields);
  } catch (const Error& error) {
    // What is learnt is worth more than the record of it.
    log_.notice(fmt::format("{}; the run goes on without it", error.what()));
    metrics_.reset();
  }
}

void Display::finish() {
  const double elapsed = timing_ ? seconds_since(timing_began_) : 0;
  const double images = static_cast<double>(speed_.steps()) * static_cast<double>(session_.config.global_batch());
  if (session_.config.mode == RunMode::training_and_evaluation) {
    log_.line("Done with training");
  } else {
    log_.total(elapsed > 0 ? images / elapsed : 0);
  }
  summary(elapsed);
}

}  // namespace dtrain::cnn_benchmarks
