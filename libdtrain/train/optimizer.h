// Optimizer: an update rule bound to the arenas of a ParameterStore.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/ops/update.h"

namespace dtrain {

struct OptimizerOptions {
  UpdateOptions update{};
  float weight_decay = 0;
  bool averages = false;    // a moving average of the parameters is kept beside them, by update.average_decay
  bool decays_all = false;  // or only parameters whose options say `decay`: neither biases nor norms
};

// What the store says of a parameter counts from the next step() on: a frozen one keeps its value, its state and its
// average, and of the others
// - `rate` multiplies the learning rate, and with it the decoupled decay of AdamW, as a group's rate does in PyTorch;
// - `weight_decay` multiplies that of the options, in l2_loss() too. Biases and norms have none to be multiplied
//   unless all parameters decay;
// - LARS and LAMB compute the ratio of norms with the multiplied decay, and multiply the ratio by the multiplied rate.
//   A parameter whose decay is multiplied by 0 still has its ratio; biases and norms take the rate itself, whether they
//   decay or not;
// - LARC compares the local rate of every parameter, biases and norms included, with the multiplied rate;
// - clipping by norm is by the one norm of all gradients, which no multiplier changes.
class Optimizer {
 public:
  // The state arenas are made here. Throws Error where the store is not allocated yet, or without gradients, and
  // for a decay, a momentum or another number that is negative, not finite or, of a share, above 1.
  Optimizer(ParameterStore& store, const OptimizerOptions& options);
  // One update from the store's gradient arena; rate, scale and step come from the context's StepScalars. What is
  // frozen and multiplied may change between two steps, but not while one is recorded: that throws, and what has been
  // recorded before such a change must be recorded anew.
  void step();
  // Global norm of the scaled gradient in the last step, before clipping: [1], on the device.
  Tensor norm() const { return norms_.slice(0, 1); }
  // The same, waiting for it.
  float gradient_norm() const;
  // weight_decay / 2 * sum of squares of the decayed parameters: what tf_cnn_benchmarks adds to the loss it prints.
  // Waits for the device.
  float l2_loss();
  // The same as [1], on the device.
  const Tensor& queue_l2_loss();
  // The moving average, laid out like the store's values(); undefined where none is kept. It begins with the values
  // that there are when the optimizer is made.
  const Tensor& average() const { return average_; }
  // Begins it anew, once other values have been loaded; does nothing where none is kept.
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
  uint64_t planned_version_;  // the store's layout_version() that plan_ was made for
  std::vector<Tensor> state_;
  Tensor norms_, l2_loss_, average_;
  Lifetime lifetime_;
};

}  // namespace dtrain
