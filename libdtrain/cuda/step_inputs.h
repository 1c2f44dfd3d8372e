// The host's part of the StepScalars, on its way to the device.
#pragma once

#include "libdtrain/core/context.h"

namespace dtrain::cuda {

// Queues *to = inputs. They travel with the launch: no host memory has to outlive the call, and unlike a copy from
// pageable memory it never makes the host wait for what is queued before.
void store_inputs(const Context& context, const StepInputs& inputs, StepInputs* to);

}  // namespace dtrain::cuda
