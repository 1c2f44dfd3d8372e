// Trainer: the step. Forward, loss, backward, update, over one or more micro-steps; no architecture, no data set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libdtrain/ops/loss.h"
#include "libdtrain/train/optimizer.h"
#include "libdtrain/train/schedule.h"

namespace dtrain {

struct TrainerOptions {
  int micro_steps = 1;              // gradient accumulation: the gradient is the mean over them
  float loss_scale = 1;             // of a dynamic one, the first
  int double_loss_scale_after = 0;  // steps in a row after which a dynamic loss scale doubles; 0: it is static
  uint64_t seed = 0;                // of dropout and the like
};

struct StepReport {
  uint64_t step = 0;  // updates done, this one included
  float loss = 0;     // mean over the micro-steps, without the L2 term
  float learning_rate = 0;
  float gradient_norm = 0;
  float top_1 = 0, top_5 = 0;  // share of the rows
  bool finite = true;          // false: the update was not applied, nor is any later one
  float loss_scale = 1;        // after this step
  uint64_t skipped = 0;        // updates left out so far, each of which halved the loss scale
};

class Trainer {
 public:
  // Runs the model on micro-batch `micro_step` and returns its loss.
  using Forward = std::function<Classification(Tape&, int micro_step)>;

  Trainer(ParameterStore& store, Optimizer& optimizer, Schedule schedule, TrainerOptions options = {});

  // One step, and what it came to.
  StepReport step(const Forward& forward);
  // The same in two halves. `enqueue` does not wait for the device; `collect` does, and reports the steps since the
  // last call, oldest first: at most the last kRing. A checkpoint may be committed once all its steps are known finite.
  void enqueue(const Forward& forward);
  std::vector<StepReport> collect();
  static constexpr uint64_t kRing = 64;

  uint64_t steps_done() const { return steps_done_; }
  // Of a checkpoint: the step it was made after and the state saved in it, whose loss scale is taken over where both
  // that run's and this one's are dynamic.
  void resume(uint64_t steps_done, const StepState& saved = {});
  // What a checkpoint needs for it; waits for the device.
  StepState step_state() const { return store_.context().get_scalars(); }
  const Schedule& schedule() const { return schedule_; }
  // Names of the trainable parameters that the last step's loss did not depend on.
  const std::vector<std::string>& unwritten_parameters() const { return unwritten_; }
  // The parameter with the largest gradient norm (a non-finite one first), for the report of a diverged step.
  std::string worst_parameter() const;

 private:
  float rate_of(uint64_t step) const { return static_cast<float>(schedule_.at(step)); }

  ParameterStore& store_;
  Optimizer& optimizer_;
  Schedule schedule_;
  TrainerOptions options_;
  Tensor ring_;  // [kRing, kStepMetrics]
  uint64_t steps_done_ = 0, collected_ = 0;
  std::vector<std::string> unwritten_;
};

}  // namespace dtrain
