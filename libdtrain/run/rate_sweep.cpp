#include "libdtrain/run/rate_sweep.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

void check(const RateSweepOptions& options) {
  DT_CHECK(options.first > 0 && options.last > options.first, "learning-rate sweep from ", options.first, " to ",
           options.last, ": expected positive rates that grow");
  DT_CHECK(options.steps >= 2, "learning-rate sweep of ", options.steps, " steps, expected 2 or more");
  DT_CHECK(options.smoothing >= 0 && options.smoothing < 1, "learning-rate sweep: smoothing ", options.smoothing,
           ", expected 0 to less than 1");
}

// Rate per step.
Schedule schedule_of(const RateSweepOptions& options) {
  Schedule schedule;
  schedule.decay = Schedule::Decay::exponential;
  schedule.base = options.first;
  schedule.factor = std::pow(options.last / options.first, 1 / static_cast<double>(options.steps - 1));
  return schedule;
}

// Derivative as numpy.gradient: one-sided at the ends, central elsewhere.
std::optional<size_t> steepest_descent(const std::vector<RateSweep::Point>& points, size_t first, size_t end) {
  if (end < first + 2) return std::nullopt;
  std::optional<size_t> found;
  double least = -1e-9 * std::abs(points[first].smoothed);  // beyond rounding errors
  for (size_t i = first; i < end; ++i) {
    const size_t before = std::max(i, first + 1) - 1, after = std::min(i + 1, end - 1);
    const double slope = (points[after].smoothed - points[before].smoothed) / static_cast<double>(after - before);
    if (slope < least) {
      least = slope;
      found = i;
    }
  }
  return found;
}

// Records losses and decides when to stop.
class Losses final : public Observer {
 public:
  explicit Losses(const RateSweepOptions& options) : options_(options) {}
  void stepped(const Stepped& event) override {
    all_.push_back(event.loss);
    diverged_ = diverged_ || evaluate_sweep(options_, all_).diverged;
  }
  bool diverged() const { return diverged_; }
  const std::vector<double>& all() const { return all_; }

 private:
  const RateSweepOptions& options_;
  std::vector<double> all_;
  bool diverged_ = false;
};

}  // namespace

RateSweep evaluate_sweep(const RateSweepOptions& options, const std::vector<double>& losses) {
  check(options);
  const Schedule schedule = schedule_of(options);
  RateSweep sweep;
  double average = 0, weight = 1, best = 0;
  for (const double loss : losses) {
    average = options.smoothing * average + (1 - options.smoothing) * loss;
    weight *= options.smoothing;
    const double smoothed = average / (1 - weight);
    const size_t number = sweep.points.size();
    sweep.diverged =
        !std::isfinite(loss) || (number > 0 && options.stop_factor > 0 && smoothed > options.stop_factor * best);
    if (sweep.diverged) break;
    if (number == 0 || smoothed < best) best = smoothed;
    sweep.points.push_back({schedule.at(number), loss, smoothed});
  }
  const size_t count = sweep.points.size();
  sweep.suggestion = steepest_descent(sweep.points, options.skip_first, count - std::min(options.skip_last, count));
  return sweep;
}

std::optional<RateSweep> sweep_learning_rate(Task& task, Optimizer& optimizer, ParameterStore& store,
                                             const TrainerOptions& trainer, Group& group, const RunOptions& run,
                                             const RateSweepOptions& options, std::vector<Observer*> observers,
                                             const std::function<bool()>& stop) {
  check(options);
  RunOptions own;
  own.cadence = {.total_steps = options.steps, .show_every = run.cadence.show_every};
  own.batch = run.batch;
  own.chief = run.chief;
  own.faults = run.faults;
  own.advice_on_memory = run.advice_on_memory;
  Losses losses(options);
  observers.push_back(&losses);
  Trainer sweeper(store, optimizer, schedule_of(options), trainer);
  Run sweep(task, sweeper, group, own, std::move(observers), [&] { return losses.diverged() || (stop && stop()); });
  try {
    if (sweep.train() == Outcome::stopped && !losses.diverged()) return std::nullopt;
  } catch (const Error& error) {
    if (error.fault() != Fault::numeric) throw;
    std::vector<double> seen = losses.all();
    seen.push_back(std::nan(""));
    return evaluate_sweep(options, seen);
  }
  return evaluate_sweep(options, losses.all());
}

}  // namespace dtrain
