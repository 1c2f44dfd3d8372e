// Transfer of the host's part of StepScalars to the device.
#pragma once

#include "dtrain/core/context.h"

namespace dtrain::cuda {

// Enqueues *to = inputs. Passed as kernel arguments: no host memory must outlive the call, and the host never waits, as
// it may in a copy from pageable memory.
void store_inputs(const Context& context, const StepInputs& inputs, StepInputs* to);

}  // namespace dtrain::cuda
