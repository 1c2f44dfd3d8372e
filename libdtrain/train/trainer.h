// Trainer: the step. Forward, loss, backward, update, over one or more micro-steps; no architecture, no data set.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/distributed/bucketer.h"
#include "libdtrain/train/loss.h"
#include "libdtrain/train/optimizer.h"
#include "libdtrain/train/running_statistics.h"
#include "libdtrain/train/schedule.h"
#include "libdtrain/train/step_report.h"

namespace dtrain {

struct TrainerOptions {
  int micro_steps = 1;              // gradient accumulation: the gradient is the mean over them
  float loss_scale = 1;             // the first one, where it is dynamic
  int double_loss_scale_after = 0;  // steps in a row after which a dynamic loss scale doubles; 0: it is static
  uint64_t seed = 0;                // for dropout and the like
  bool cuda_graph = true;  // on a GPU: record the step and replay it; where that fails the context has a notice
  // Connects the ranks that train together, each on its own batches: gradients, loss and running statistics are means.
  Communicator* communicator = nullptr;  // outlives the trainer; none: one rank
  BucketOptions buckets{};
  bool equal_statistics = false;  // batch norm is synchronised: running statistics are the same on all ranks anyway
  bool independent = false;       // ranks train models of their own: only metrics are summed
};

class Trainer {
 public:
  // Runs the model on micro-batch `micro_step` and returns its loss. Where steps are replayed it is only called for the
  // first kEagerSteps + 1 of a signature: it reads tensors that stay where they are, and does nothing but queue work.
  using Forward = std::function<Loss(Tape&, int micro_step)>;

  // What is given outlives the trainer. Throws Error where the optimizer updates another store, where a group of
  // several ranks has not the same seed, micro-steps, schedule, update, parameters (with their options), order of sums
  // and buckets on each, or where options make no sense. Collective.
  Trainer(ParameterStore& store, Optimizer& optimizer, Schedule schedule, TrainerOptions options = {});

  // One step, and what it came to.
  StepReport step(const Forward& forward, const StepRequest& request = {});
  // The same in two halves. `enqueue` does not wait for the device. `collect` reports the steps since the last call,
  // oldest first, at most the last kRing: those that are done, and it waits until all but `leave` are. A checkpoint may
  // be committed once all its steps are known finite. After a step that was not, no parameter changes any more:
  // `enqueue` throws Error(Fault::numeric) once it has been reported, until resume() is called.
  void enqueue(const Forward& forward, const StepRequest& request = {});
  // The next step of several ranks begins: it belongs to Section::step of their group, or to Section::setup while
  // libraries choose their algorithms in the first ones. `enqueue` calls this; whoever loads batches before may do so
  // too, so that a rank which waits for them is reported in the right step.
  void enter_step();
  std::vector<StepReport> collect(uint64_t leave = 0);
  // Steps of a signature that are run before one is recorded: libraries choose their algorithms in the first, and the
  // time of the parts is that of the others.
  static constexpr int kEagerSteps = 3;
  static constexpr uint64_t kRing = 64;

  uint64_t steps_done() const { return steps_done_; }
  // Continues from a checkpoint: the step it was made after and the state saved in it, whose loss scale is taken over
  // where both that run's and this one's are dynamic.
  void resume(uint64_t steps_done, const StepState& saved = {});
  // What a checkpoint needs for it; waits for the device.
  StepState step_state() const { return store_->context().get_scalars(); }
  const Schedule& schedule() const { return schedule_; }
  const TrainerOptions& options() const { return options_; }
  ParameterStore& store() const { return *store_; }
  Optimizer& optimizer() const { return *optimizer_; }
  // Another size of the gradient buckets, from the next step on: before any step is recorded.
  void set_buckets(const BucketOptions& options);
  // Names of the trainable parameters that the last step's loss did not depend on.
  const std::vector<std::string>& unwritten_parameters() const { return unwritten_; }
  // The parameter with the largest gradient norm (a non-finite one first), for the report of a diverged step.
  std::string worst_parameter() const;

 private:
  // Where the parts of a step begin.
  using Parts = std::vector<std::pair<double StepTimes::*, Event>>;
  // The steps of one signature.
  struct CapturedStep {
    bool met = false;  // one of them has been queued
    int eager_steps = 0;
    std::shared_ptr<cuda::StepGraph> graph;
    Parts parts;  // those of the graph
  };
  // A step on its way, by its number modulo kRing.
  struct Pending {
    Event before, begin, end;
    Parts parts{};
    bool l2_loss = false;
  };

  // Takes up what has been frozen or unfrozen since the last step.
  void follow_layout();
  float rate_of(uint64_t step) const { return static_cast<float>(schedule_.at(step)); }
  int ranks() const { return options_.communicator ? options_.communicator->size() : 1; }
  bool uses_graphs() const { return options_.cuda_graph && !store_->context().is_cpu(); }
  void run(const Forward& forward, Parts& parts);
  void run_micro_step(const Forward& forward, int micro_step, Parts& parts);
  void add_metrics(const Loss& loss, bool add);
  void sum_over_ranks(Parts& parts);
  void run_graph(const Forward& forward, const std::string& signature, Pending& pending);
  void mark(Parts& parts, double StepTimes::*part, const char* name);
  StepReport report_of(uint64_t step) const;
  StepTimes times_of(const Pending& pending) const;

  CheckedRef<ParameterStore> store_;
  CheckedRef<Optimizer> optimizer_;
  Schedule schedule_;
  TrainerOptions options_;
  std::optional<Bucketer> bucketer_;
  RunningStatistics statistics_;
  MetricColumns columns_;
  Tensor row_, ring_;           // sums of a step [columns] and [kRing, columns], on the device, from the first step on
  Tensor host_ring_, host_l2_;  // its rows, and [kRing] L2 terms, in memory of host_allocator()
  std::array<Pending, kRing> pending_;
  std::map<std::string, CapturedStep> captured_;
  bool tunes_ = false;  // the step measures ways of computing: nothing else shall be under way meanwhile
  uint64_t steps_done_ = 0, collected_ = 0;
  uint64_t resumed_after_ = 0;  // steps that were done before this trainer
  uint64_t layout_version_;     // the store's, for which buckets and recordings were made
  uint64_t diverged_ = 0;       // the first step that was not finite; 0: none
  std::vector<std::string> unwritten_;
  double bytes_ = 0;  // those that a step moves
};

}  // namespace dtrain
