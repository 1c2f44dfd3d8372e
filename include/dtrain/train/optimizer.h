// Optimizer: an update rule over the arenas of a ParameterStore.
#pragma once

#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/ops/update.h"

namespace dtrain {

struct OptimizerOptions {
  UpdateOptions update{};
  float weight_decay = 0;
  bool averages = false;    // keep a moving average of the parameters, by update.average_decay
  bool decays_all = false;  // else only parameters with the option `decay`: neither biases nor norms
};

// Parameter settings of the store apply from the next step() on. Frozen parameters keep value, state and average. For
// the others
// - `rate` multiplies the learning rate, and with it AdamW's decoupled decay, as the rate of a parameter group in
// PyTorch;
// - `weight_decay` multiplies the option's decay, also in l2_loss(); biases and norms have none unless all parameters
//   decay;
// - LARS and LAMB compute the trust ratio with the multiplied decay and multiply it by the multiplied rate; a parameter
//   with decay multiplied by 0 still has a ratio, while biases and norms use the plain rate, with or without decay;
// - LARC compares the local rate of every parameter, biases and norms included, with the multiplied rate;
// - clipping by norm uses the global norm of all gradients, which no multiplier changes.
class Optimizer {
 public:
  // Allocates the state arenas. Throws Error if the store is not allocated or has no gradients, and for hyperparameters
  // that are negative, non-finite or, for fractions, above 1.
  explicit Optimizer(ParameterStore& store, const OptimizerOptions& options = {});
  // One update from the gradient arena; rate, scale and step come from the context's StepScalars. Freezing and
  // multipliers may change between steps, but not during a capture, which throws; a graph captured before such a change
  // must be captured again.
  void step();
  // Global norm of the scaled gradients in the last step, before clipping: [1], on the device.
  Tensor norm() const { return norms_.slice(0, 1); }
  // The same on the host; waits for the device.
  float gradient_norm() const;
  // weight_decay / 2 * sum of squares of the decayed parameters, which tf_cnn_benchmarks adds to its printed loss.
  // Waits for the device.
  float l2_loss();
  // The same as [1], on the device, asynchronous.
  const Tensor& queue_l2_loss();
  // Moving average, laid out like the store's values(); undefined if not kept. Initialised with the values at
  // construction.
  const Tensor& average() const { return average_; }
  // Reinitialises it after other values have been loaded; no-op if not kept.
  void restart_average();
  const OptimizerOptions& options() const { return options_; }
  const ParameterStore& store() const { return *store_; }
  // For a CheckedRef.
  std::weak_ptr<const void> lifetime() const { return lifetime_.watch(); }
  std::string describe() const;  // "momentum 0.9 (Nesterov), weight decay 0.0001 except on biases and norms"

 private:
  const UpdatePlan& plan();

  CheckedRef<ParameterStore> store_;
  OptimizerOptions options_;
  UpdatePlan plan_;
  uint64_t planned_version_;  // the store's layout_version() of plan_
  std::vector<Tensor> state_;
  Tensor norms_, l2_loss_, average_;
  Lifetime lifetime_;
};

}  // namespace dtrain
