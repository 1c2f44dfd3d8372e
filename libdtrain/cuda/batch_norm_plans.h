// BatchNormPlans: which schedule batch norm takes on one GPU.
#pragma once

#include "libdtrain/ops/batch_norm.h"

namespace dtrain::cuda {

class BatchNormPlans {
 public:
  const BatchNormSchedule& schedule() const { return schedule_; }
  void set_schedule(const BatchNormSchedule& schedule) { schedule_ = schedule; }

 private:
  BatchNormSchedule schedule_;
};

}  // namespace dtrain::cuda
