// Trainer: the training step (forward, loss, backward, update) with gradient accumulation; independent of architecture
// and data.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/distributed/bucketer.h"
#include "dtrain/train/loss.h"
#include "dtrain/train/optimizer.h"
#include "dtrain/train/schedule.h"
#include "dtrain/train/step_report.h"

namespace dtrain {

class RunningStatistics;

struct TrainerOptions {
  int micro_steps = 1;              // gradient accumulation steps; gradients are averaged
  float loss_scale = 1;             // initial value if dynamic
  int double_loss_scale_after = 0;  // good steps after which a dynamic loss scale doubles; 0: static
  uint64_t seed = 0;                // for dropout and other sampling
  bool cuda_graph = true;  // on a GPU: capture the step as a CUDA graph; a failed capture gives a notice of the context
  // Data parallelism: gradients, loss and running statistics are averaged over ranks with different batches.
  Communicator* communicator = nullptr;  // must outlive the trainer; null: one rank
  BucketOptions buckets{};
  bool equal_statistics = false;  // synchronised batch norm: running statistics are equal on all ranks
  bool independent = false;       // ranks train different models: only metrics are reduced
};

class Trainer {
 public:
  // Runs the model on micro-batch `micro_step` and returns its loss. With CUDA graphs it is called for the first
  // kEagerSteps + 1 steps of a signature only: it must read tensors at fixed addresses and only enqueue work.
  using Forward = std::function<Loss(Tape&, int micro_step)>;

  // Arguments must outlive the trainer. Throws Error if the optimizer is of another store, if ranks differ in seed,
  // micro-steps, schedule, update rule, parameters (with options), order of additions or buckets, or for invalid
  // options. Collective.
  Trainer(ParameterStore& store, Optimizer& optimizer, Schedule schedule, TrainerOptions options = {});

  // Runs one step and returns its report.
  StepReport step(const Forward& forward, const StepRequest& request = {});
  // Asynchronous step. enqueue() does not wait for the device. collect() reports finished steps since the last call,
  // oldest first, at most kRing; it waits until all but `leave` are finished. Commit a checkpoint only once all its
  // steps are known to be finite. After a non-finite step parameters no longer change: enqueue() throws
  // Error(Fault::numeric) once it has been reported, until resume().
  void enqueue(const Forward& forward, const StepRequest& request = {});
  // Announces the next step of several ranks to the group: Section::step, or Section::setup while libraries autotune in
  // the first steps. enqueue() calls it; a caller that loads batches before may call it earlier, so that waiting ranks
  // are reported in the right step.
  void enter_step();
  std::vector<StepReport> collect(uint64_t leave = 0);
  // Eager steps of a signature before its capture: libraries autotune in the first, the others give the times of the
  // parts.
  static constexpr int kEagerSteps = 3;
  static constexpr uint64_t kRing = 64;

  uint64_t steps_done() const { return steps_done_; }
  // Continues from a checkpoint after `steps_done`; the saved loss scale is used if both runs' are dynamic.
  void resume(uint64_t steps_done, const StepState& saved = {});
  // State for a checkpoint; waits for the device.
  StepState step_state() const { return store_->context().get_scalars(); }
  const Schedule& schedule() const { return schedule_; }
  const TrainerOptions& options() const { return options_; }
  ParameterStore& store() const { return *store_; }
  Optimizer& optimizer() const { return *optimizer_; }
  // Changes the gradient buckets from the next step on; only before the first capture.
  void set_buckets(const BucketOptions& options);
  // Trainable parameters that did not affect the last loss.
  const std::vector<std::string>& unwritten_parameters() const { return unwritten_; }
  // Parameter with the largest gradient norm, non-finite first, for the report of a diverged step.
  std::string worst_parameter() const;

 private:
  // Events at the starts of a step's parts.
  using Parts = std::vector<std::pair<double StepTimes::*, Event>>;
  // Captured step of one signature.
  struct CapturedStep {
    bool met = false;  // a step of it has been enqueued
    int eager_steps = 0;
    std::shared_ptr<cuda::StepGraph> graph;
    Parts parts;  // of the graph
  };
  // Step in flight, indexed by its number modulo kRing.
  struct Pending {
    Event before, begin, end;
    Parts parts{};
    bool l2_loss = false;
  };

  // Applies freezing and unfreezing since the last step.
  void follow_layout();
  float rate_of(uint64_t step) const { return static_cast<float>(schedule_.at(step)); }
  int ranks() const { return options_.communicator ? options_.communicator->size() : 1; }
  bool uses_graphs() const { return options_.cuda_graph && !store_->context().is_cpu(); }
  void run(const Forward& forward, Parts& parts);
  void run_micro_step(const Forward& forward, int micro_step, Parts& parts);
  void add_metrics(const Loss& loss, bool add);
  void all_reduce_step(Parts& parts);
  void run_graph(const Forward& forward, const std::string& signature, Pending& pending);
  void mark(Parts& parts, double StepTimes::*part, const char* name);
  StepReport report_of(uint64_t step) const;
  StepTimes times_of(const Pending& pending) const;

  CheckedRef<ParameterStore> store_;
  CheckedRef<Optimizer> optimizer_;
  Schedule schedule_;
  TrainerOptions options_;
  std::optional<Bucketer> bucketer_;
  std::shared_ptr<RunningStatistics> statistics_;
  MetricColumns columns_;
  Tensor row_, ring_;           // sums of a step [columns] and [kRing, columns], on the device, from the first step on
  Tensor host_ring_, host_l2_;  // host copies of the rows, and [kRing] L2 terms, in memory of host_allocator()
  std::array<Pending, kRing> pending_;
  std::map<std::string, CapturedStep> captured_;
  bool tunes_ = false;  // the step autotunes: no other work may run meanwhile
  uint64_t steps_done_ = 0, collected_ = 0;
  uint64_t resumed_after_ = 0;  // steps done before this trainer
  uint64_t layout_version_;     // the store's version for which buckets and graphs were made
  uint64_t diverged_ = 0;       // first non-finite step; 0: none
  std::vector<std::string> unwritten_;
  double bytes_ = 0;  // memory traffic of a step
};

}  // namespace dtrain
