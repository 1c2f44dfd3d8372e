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
  int micro_steps = 1;  // gradient accumulation: the gradient is the mean over them
  float loss_scale = 1;
  uint64_t seed = 0;  // of dropout and the like
};

struct StepReport {
  uint64_t step = 0;  // updates done, this one included
  float loss = 0;     // mean over the micro-steps, without the L2 term
  float learning_rate = 0;
  float gradient_norm = 0;
  float top_1 = 0, top_5 = 0;  // share of the rows
  bool finite = true;          // false: the update was not applied, nor is any later one
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
  void set_steps_done(uint64_t steps) { steps_done_ = collected_ = steps; }
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
  bool finite_ = true;
  std::vector<std::string> unwritten_;
};

}  // namespace dtrain
