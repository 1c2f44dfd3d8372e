// Device time of some work in a CUDA graph, without launch overhead of the host.
#pragma once

#include <functional>
#include <limits>

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// Milliseconds of device time of the work that `run` enqueues on the compute stream, as part of a CUDA graph: host
// launch overhead is excluded, as in captured steps. `run` is called several times and must do the same work each time.
// If its first run takes far more than `limit`, that time is returned. Waits for the device; no capture may be active.
float graph_milliseconds(const Context& context, const std::function<void()>& run,
                         float limit = std::numeric_limits<float>::infinity());

}  // namespace dtrain::cuda
