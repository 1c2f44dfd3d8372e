// How long the device takes for some work where a recorded step replays it.
#pragma once

#include <functional>
#include <limits>

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// Milliseconds that the device takes for what `run` queues on the compute stream, the host's time for its launches left
// out: choices between ways through a step are for steps that are replayed. `run` is called a few times, and has to do
// the same each time. Where its first run takes far more than `limit`, that one's time is returned. Waits for the
// device; no step may be captured meanwhile.
float graph_milliseconds(const Context& context, const std::function<void()>& run,
                         float limit = std::numeric_limits<float>::infinity());

}  // namespace dtrain::cuda
