// Timing of the steps of a run, and the lines they print.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "apps/cnn_benchmarks/log.h"
#include "apps/cnn_benchmarks/session.h"
#include "libdtrain/distributed/stragglers.h"
#include "libdtrain/train/trainer.h"

namespace dtrain::cnn_benchmarks {

// What a step has to tell.
struct StepFigures {
  uint64_t step = 0;        // steps done, this one included
  double loss = 0, l2 = 0;  // mean over the global batch; the L2 term of the total loss
  double learning_rate = 0;
  Accuracy accuracy;
  double wait_seconds = 0;  // for data, since the start of the run
  StepTimes times{};
  double own_seconds = 0;  // of this rank, its input included, without the wait for others
  Straggler slowest{};     // of several ranks, by what they last told each other
  double bytes = 0;        // as in StepReport
  float loss_scale = 1;
  uint64_t skipped = 0;  // updates left out so far to lower the loss scale
  int requests = 0;      // ranks that ask to stop
};

// Steps of the warm-up are run and not shown; the number of a printed step counts from the end of the warm-up, as in
// tf_cnn_benchmarks. What is continued behind its warm-up has none.
class Display {
 public:
  // `done`: steps done before this run.
  Display(const Session& session, Log& log, uint64_t done);

  // True if step number `step` will be printed.
  bool shows(uint64_t step) const;
  // Steps may begin while earlier ones have not ended: then a step's time is that since the end of the one before.
  void begin_step();
  void end_step(const StepFigures& figures);
  // The footer, unless a run that also evaluates has none; then waits for data and memory.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  void add_sums(const StepFigures& figures);
  void append_metrics(const StepFigures& figures, double total_loss);
  void begin_timing();
  void summary(double elapsed) const;
  void summary_of_step() const;
  void summary_of_sums() const;

  const Session& session_;
  Log& log_;
  Throughput speed_;
  std::optional<MetricsFile> metrics_;
  uint64_t first_, step_, warmup_, first_timed_;
  uint64_t under_way_ = 0;         // steps that have begun and not ended
  StepTimes times_, shown_times_;  // sums over the timed steps; at the last printed step
  // Of the gradients over the ranks: over the steps in which they were timed, and what those steps took.
  struct Sums {
    CommunicatorTimes times{};
    double step_seconds = 0;
    uint64_t steps = 0;
  };
  Sums sums_, shown_sums_;  // now, at the last printed step
  double bytes_ = 0;        // of a step, as in StepReport
  bool timing_ = false;
  Clock::time_point timing_began_, step_began_;
  uint64_t shown_step_;
  double wait_ = 0, shown_wait_ = 0, timed_wait_ = 0;  // now, at the last printed step, at the end of the warm-up
};

}  // namespace dtrain::cnn_benchmarks
