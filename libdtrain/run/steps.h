// The training steps of a run: queued ahead of the device, and reported once they are done.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "libdtrain/run/run.h"
#include "libdtrain/train/bucket_tuner.h"

namespace dtrain {

class Steps {
 public:
  Steps(Task& task, Trainer& trainer, Group& group, const RunOptions& options);

  // Continues from a checkpoint: the stream of samples begins at its cursor.
  void resume(const TrainState& state) { cursor_ = state.cursor; }

  // Queues the next step: all its batches, then the step. `shown`: the L2 term will be asked for. `asks`: all ranks
  // shall stop; Done::requests counts those that ask.
  void queue(bool shown, bool asks);
  uint64_t queued() const { return trainer_.steps_done(); }

  // What a step has come to, and what it took this rank.
  struct Done {
    StepReport report{};
    double wait_seconds = 0;  // for data, since the run began
    double own_seconds = 0;   // for its own part, input included, without the wait for others
  };
  // The steps that are done and not reported yet; waits until all but `leave` are, or for all while sizes of buckets
  // are tried. Throws Error(Fault::numeric) where a loss or a gradient was not finite.
  std::vector<Done> finished(uint64_t leave);
  // What a checkpoint needs after the last queued step. Waits for the device.
  void describe(TrainState& state) const;
  // The part of it that says how several ranks make their sums.
  void describe_sums(TrainState& state) const;

 private:
  // A step on its way.
  struct Sent {
    std::vector<uint64_t> samples;
    double wait_seconds = 0;
    double seconds = 0;  // that the host took to queue it
  };
  void send(StepRequest request);
  double own_seconds(const StepTimes& times, double host) const;
  // What the last step took while sizes of buckets are tried, and the choice once all have been.
  void tune(double seconds);
  [[noreturn]] void report_divergence(const StepReport& report, const Sent& sent) const;
  Context& context() const { return trainer_.store().context(); }

  Task& task_;
  Trainer& trainer_;
  Group& group_;
  const RunOptions& options_;
  BucketOptions buckets_;             // as they are now
  std::optional<BucketTuner> tuner_;  // while it tries others
  uint64_t cursor_ = 0;
  bool opened_ = false;
  std::deque<Sent> sent_;
};

}  // namespace dtrain
