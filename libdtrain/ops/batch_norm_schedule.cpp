#include "libdtrain/ops/batch_norm_schedule.h"

#include "dtrain/core/dispatch.h"

namespace dtrain {

void set_batch_norm_schedule(Context& context, const BatchNormSchedule& schedule) {
  DT_DISPATCH(context, set_batch_norm_schedule)(schedule);
}

}  // namespace dtrain
