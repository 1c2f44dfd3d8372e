#include "apps/observers/step_statistics.h"

#include <utility>

namespace dtrain::observers {
namespace {

void add(const StepTimes& times, StepTimes& sum) {
  sum.step += times.step;
  sum.before += times.before;
  sum.forward += times.forward;
  sum.backward += times.backward;
  sum.reduce += times.reduce;
  sum.update += times.update;
}

}  // namespace

void StepStatistics::begun(uint64_t step) {
  step_ = step;
  first_ = step + 1;
}

bool StepStatistics::begin_timing() {
  timing_ = true;
  timing_began_ = Clock::now();
  timed_wait_ = wait_;
  return true;
}

bool StepStatistics::stepping() {
  const bool was_idle = std::exchange(idle_, false);
  return was_idle && !timing_ && step_ >= warmup_ && begin_timing();
}

bool StepStatistics::stepped(const Stepped& event) {
  step_ = event.step;
  wait_ = event.wait_seconds;
  idle_ = !event.more_under_way;
  add_sums(event);
  if (!timing_) return step_ >= warmup_ && !idle_ && begin_timing();
  speed_.add(event.seconds);
  add(event.times, times_);
  bytes_ = event.bytes;
  return false;
}

// The first step is not representative: it allocates memory and opens connections.
void StepStatistics::add_sums(const Stepped& event) {
  if (step_ == first_ || event.sums.bytes == 0) return;
  sums_.times.busy += event.sums.busy;
  sums_.times.exposed += event.sums.exposed;
  sums_.times.bytes += event.sums.bytes;
  sums_.step_seconds += event.times.step;
  ++sums_.steps;
}

double StepStatistics::seconds_until(uint64_t end) const {
  if (speed_.steps() == 0 || end <= step_) return 0;
  return elapsed() / static_cast<double>(speed_.steps()) * static_cast<double>(end - step_);
}

double StepStatistics::elapsed() const {
  return timing_ ? std::chrono::duration<double>(Clock::now() - timing_began_).count() : 0;
}

}  // namespace dtrain::observers
