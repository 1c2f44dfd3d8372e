// Steps: training steps of a run, enqueued ahead of the device and reported once done.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "dtrain/run/run.h"
#include "libdtrain/train/bucket_tuner.h"

namespace dtrain {

class Steps {
 public:
  Steps(Task& task, Trainer& trainer, Group& group, const RunOptions& options);

  // Continues from a checkpoint: the sample stream begins at its cursor.
  void resume(const TrainState& state) { cursor_ = state.cursor; }

  // Enqueues the next step: all its batches, then the step. `shown`: compute the L2 term. `asks`: request a stop of all
  // ranks, counted in Done::requests.
  void enqueue(bool shown, bool asks);
  uint64_t enqueued() const { return trainer_.steps_done(); }

  // Result of a step and its cost on this rank.
  struct Done {
    StepReport report{};
    double wait_seconds = 0;  // for data, since the start of the run
    double own_seconds = 0;   // own part of the step, including input, without waiting for others
  };
  // Finished steps not reported yet; waits until all but `leave` are done, or for all while bucket sizes are tuned.
  // Throws Error(Fault::numeric) for a non-finite loss or gradient.
  std::vector<Done> finished(uint64_t leave);
  // State for a checkpoint after the last enqueued step. Waits for the device.
  void describe(TrainState& state) const;
  // Its part about all-reduce settings.
  void describe_sums(TrainState& state) const;

 private:
  // Step in flight.
  struct Sent {
    std::vector<uint64_t> samples;
    double wait_seconds = 0;
    double seconds = 0;  // host time to enqueue it
  };
  void send(StepRequest request);
  double own_seconds(const StepTimes& times, double host) const;
  // Passes the last step's time to the tuner, and applies its choice at the end.
  void tune(double seconds);
  [[noreturn]] void report_divergence(const StepReport& report, const Sent& sent) const;
  Context& context() const { return trainer_.store().context(); }

  Task& task_;
  Trainer& trainer_;
  Group& group_;
  const RunOptions& options_;
  BucketOptions buckets_;             // current
  std::optional<BucketTuner> tuner_;  // while tuning
  uint64_t cursor_ = 0;
  bool opened_ = false;
  std::deque<Sent> sent_;
};

}  // namespace dtrain
