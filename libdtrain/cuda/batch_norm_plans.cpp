#include "libdtrain/cuda/batch_norm_plans.h"

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

BatchNormPlans& Runtime::batch_norm_plans() {
  if (!batch_norm_plans_) batch_norm_plans_ = std::make_shared<BatchNormPlans>();
  return *batch_norm_plans_;
}

void set_batch_norm_schedule(Context& context, const BatchNormSchedule& schedule) {
  context.runtime().batch_norm_plans().set_schedule(schedule);
}

}  // namespace dtrain::cuda
