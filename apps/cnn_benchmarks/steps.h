// The training steps of a run, queued ahead of the device and told of once they are done.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "apps/cnn_benchmarks/display.h"
#include "apps/cnn_benchmarks/session.h"
#include "libdtrain/train/bucket_tuner.h"
#include "libdtrain/train/trainer.h"

namespace dtrain::cnn_benchmarks {

class Steps {
 public:
  explicit Steps(Session& session);

  // Goes on behind a checkpoint.
  void resume(const TrainState& state);
  std::string describe_update() const { return optimizer_.describe(); }

  // Queues the next step: all its batches, then the step. Throws Error(Fault::resource) where the first needs more
  // memory than there is, with a batch size that would fit. `l2_loss`: the L2 term will be shown.
  // `asks`: all ranks shall stop, StepFigures::requests counts those that ask.
  void queue(bool l2_loss, bool asks);
  uint64_t queued() const { return trainer_.steps_done(); }
  // The steps that are done and not told of yet; waits until all but `leave` are, or for all while sizes of buckets
  // are tried. Throws Error(Fault::numeric) where a
  // loss or a gradient was not finite.
  std::vector<StepFigures> finished(uint64_t leave);
  // What a checkpoint needs behind the last queued step. Waits for the device.
  void describe(TrainState& state) const;
  // Nothing for synthetic data.
  std::optional<data::LoaderStats> data_stats() const { return input_->stats(); }

 private:
  // Of a step on its way.
  struct Sent {
    std::vector<uint64_t> samples;
    double wait_seconds = 0;
    double seconds = 0;  // of the host, to queue it
  };
  void send(const StepRequest& request);
  double own_seconds(const StepTimes& times, double host) const;
  // With --autotune_buckets: what the last step took, and the choice once all sizes have been tried.
  void tune(double seconds);
  [[noreturn]] void report_divergence(const StepReport& report, const Sent& sent) const;

  Session& session_;
  Optimizer optimizer_;
  Trainer trainer_;
  BucketOptions buckets_;             // as they are now
  std::optional<BucketTuner> tuner_;  // while it tries others
  uint64_t cursor_ = 0;
  std::optional<Input> input_;
  std::vector<data::Batch> batches_;  // of the step that is being queued, one per micro-step
  std::deque<Sent> sent_;
};

}  // namespace dtrain::cnn_benchmarks
