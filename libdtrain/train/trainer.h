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
  float top_1 = 0, top_5 = 0;  // share of the rows that count
  bool finite = true;          // false: the update was not applied
};

class Trainer {
 public:
  // Runs the model on micro-batch `micro_step` and returns its loss.
  using Forward = std::function<Classification(Tape&, int micro_step)>;

  Trainer(ParameterStore& store, Optimizer& optimizer, Schedule schedule, TrainerOptions options = {});
  StepReport step(const Forward& forward);

  uint64_t steps_done() const { return steps_done_; }
  void set_steps_done(uint64_t steps) { steps_done_ = steps; }
  const Schedule& schedule() const { return schedule_; }
  // The parameter with the largest gradient norm (a non-finite one first), for the report of a diverged step.
  std::string worst_parameter() const;
  // weight_decay / 2 * sum of squares of the decayed parameters: what tf_cnn_benchmarks adds to the loss it prints.
  double l2_loss() const;

 private:
  ParameterStore& store_;
  Optimizer& optimizer_;
  Schedule schedule_;
  TrainerOptions options_;
  uint64_t steps_done_ = 0;
};

}  // namespace dtrain
