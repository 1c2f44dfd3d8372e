// BatchNormPlans: autotuned schedules of batch norm on one GPU.
#pragma once

#include <compare>
#include <functional>
#include <map>

#include "libdtrain/ops/batch_norm_schedule.h"
#include "libdtrain/ops/batch_norm_tiling.h"

namespace dtrain::cuda {

// Key of a plan: a call's shape, type and fusions.
struct BatchNormCall {
  int64_t rows = 0, c = 0;
  DType dtype = DType::f32;
  bool backward = false, relu = false, residual = false;
  auto operator<=>(const BatchNormCall&) const = default;
};

class BatchNormPlans {
 public:
  const BatchNormSchedule& schedule() const { return schedule_; }
  void set_schedule(const BatchNormSchedule& schedule);

  // Selects the schedule: true for `resident`, false for `two_pass`. A kind set by set_schedule() is taken as it is.
  // Otherwise `two_pass` is selected if the GPU cannot launch `resident` or shared memory can keep nothing. The first
  // call with large images times both by `run`, which must have no side effects, and keeps the faster one. `resident`
  // is selected for small images, during a capture, and in a context that is deterministic or does not autotune.
  bool resident(Context& context, const BatchNormCall& call, const BatchNormTiling& tiling,
                const std::function<void(bool resident)>& run);

 private:
  BatchNormSchedule schedule_;
  std::map<BatchNormCall, bool> resident_;
};

// Plans of this context.
BatchNormPlans& batch_norm_plans(const Context& context);

}  // namespace dtrain::cuda
