// Speeds are tf_cnn_benchmarks': a step's time includes the wait for its data; the total's includes checkpoints.
#include "apps/cnn_benchmarks/display.h"

#include <sys/resource.h>

#include <algorithm>

#include <fmt/format.h>

namespace dtrain::cnn_benchmarks {
namespace {

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// The most memory this process has held at a time.
double peak_resident_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::optional<double> moving_average(const Flags& f) {
  return f.display_perf_ewma && *f.display_perf_ewma > 0 ? f.display_perf_ewma : std::nullopt;
}

}  // namespace

Display::Display(const Session& session, Log& log, uint64_t done)
    : session_(session),
      log_(log),
      speed_(static_cast<double>(session.config.global_batch()), moving_average(session.config.flags)),
      step_(done),
      warmup_(static_cast<uint64_t>(session.config.warmup_steps)),
      shown_step_(done) {
  const std::string& path = session.config.flags.metrics_file;
  if (!path.empty()) metrics_.emplace(path, done);
  log_.line("Running warm up");
}

bool Display::shows(uint64_t step) const {
  if (step <= warmup_) return false;
  const uint64_t number = step - warmup_;
  return number % static_cast<uint64_t>(session_.config.flags.display_every) == 0 || speed_.steps() == 0;
}

void Display::begin_step() {
  if (!timing_ && step_ >= warmup_) {
    const Flags& f = session_.config.flags;
    log_.line("Done warm up");
    log_.columns(f.loss_type_to_report, f.print_training_accuracy || f.forward_only);
    timing_ = true;
    timing_began_ = Clock::now();
    timed_wait_ = shown_wait_ = wait_;
    shown_step_ = step_;
  }
  step_began_ = Clock::now();
}

void Display::end_step(const StepFigures& figures) {
  const bool shown = shows(figures.step);
  step_ = figures.step;
  wait_ = figures.wait_seconds;
  if (!timing_) return;
  speed_.add(seconds_since(step_began_));
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
}

void Display::append_metrics(const StepFigures& figures, double total_loss) {
  const double wait_ms = 1e3 * (wait_ - shown_wait_) / static_cast<double>(step_ - shown_step_);
  try {
    metrics_->append(step_, {{"loss", figures.loss},
                             {"total_loss", total_loss},
                             {"learning_rate", figures.learning_rate},
                             {"top_1_accuracy", figures.accuracy.top_1},
                             {"top_5_accuracy", figures.accuracy.top_5},
                             {"images_per_sec", speed_.speed()},
                             {"data_wait_ms", wait_ms}});
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

void Display::summary(double elapsed) const {
  const double waited = wait_ - timed_wait_;
  const double steps = std::max<double>(1, static_cast<double>(speed_.steps()));
  log_.line(fmt::format("Data wait:   {:.1f} ms per step, {:.1f} % of the time", 1e3 * waited / steps,
                        elapsed > 0 ? 100 * waited / elapsed : 0));
  log_.line(fmt::format("Peak memory: {:.0f} MiB, {:.0f} MiB of it tensors", peak_resident_mebibytes(),
                        mebibytes(session_.context->memory_stats().peak_in_use)));
}

}  // namespace dtrain::cnn_benchmarks
