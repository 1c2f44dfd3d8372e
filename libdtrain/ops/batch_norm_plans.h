// BatchNormPlans: which schedule batch norm takes on one GPU.
#pragma once

#include <compare>
#include <functional>
#include <map>

#include "libdtrain/ops/batch_norm_schedule.h"
#include "libdtrain/ops/batch_norm_tiling.h"

namespace dtrain::cuda {

// What the speed of a call depends on.
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

  // True for the resident schedule, where it can be launched: the one asked for, else the faster one. The first call of
  // large images outside a capture measures both by `run`, which must not leave a trace; one inside a capture, and all
  // calls of a context that is deterministic or does not tune, go by the rule that what can be kept is not read again.
  bool resident(Context& context, const BatchNormCall& call, const BatchNormTiling& tiling,
                const std::function<void(bool resident)>& run);

 private:
  BatchNormSchedule schedule_;
  std::map<BatchNormCall, bool> resident_;
};

// Those of this context.
BatchNormPlans& batch_norm_plans(const Context& context);

}  // namespace dtrain::cuda
