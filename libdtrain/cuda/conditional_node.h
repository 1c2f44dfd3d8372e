// Work that a recorded step does or leaves out, as the device finds when it comes there: a conditional node of its
// graph.
#pragma once

#include <functional>

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// Whether there are such nodes: since CUDA 12.4, in the toolkit of the build and in the driver.
bool has_conditional_nodes();
bool is_conditional(cudaGraphNodeType type);

// Records what `work` queues on Runtime::compute() as a node that runs if *count is above `above` by then. Between
// conditional nodes and others the order is that of the compute stream, which has to be captured. Nothing in `work` may
// use another stream or record an event that is timed: such nodes hold kernels, copies and memsets alone.
void capture_if_above(Context& context, const float* count, float above, const std::function<void()>& work);

}  // namespace dtrain::cuda
