// Optimizer: an update rule bound to the arenas of a ParameterStore.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/ops/update.h"

namespace dtrain {

struct OptimizerOptions {
  UpdateOptions update{};
  float weight_decay = 0;  // on parameters whose options say `decay`: not on biases, not on batch norm
};

class Optimizer {
 public:
  // The store is allocated; the state arenas are made here.
  Optimizer(ParameterStore& store, const OptimizerOptions& options);
  // One update from the store's gradient arena; rate, scale and step come from the context's StepScalars.
  void step();
  // Global norm of the scaled gradient in the last step, before clipping: [1], on the device.
  Tensor norm() const { return norms_.slice(0, 1); }
  // The same, waiting for it.
  float gradient_norm() const;
  // weight_decay / 2 * sum of squares of the decayed parameters: what tf_cnn_benchmarks adds to the loss it prints.
  // Waits for the device.
  float l2_loss() const;
  // The same as [1], on the device.
  const Tensor& queue_l2_loss() const;
  const OptimizerOptions& options() const { return options_; }
  std::string describe() const;  // "momentum 0.9 (Nesterov), weight decay 0.0001 except on biases and batch norm"

 private:
  ParameterStore& store_;
  OptimizerOptions options_;
  UpdatePlan plan_;
  std::vector<Tensor> state_;
  Tensor norms_, l2_loss_;
};

}  // namespace dtrain
