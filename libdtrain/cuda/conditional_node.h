// Conditional nodes of a CUDA graph: work that the device skips, depending on a value that it has computed.
#pragma once

#include <functional>

#include "libdtrain/cuda/runtime.h"

namespace dtrain::cuda {

// Whether conditional nodes are supported: CUDA 12.4 or later, by both the build's toolkit and the driver.
bool has_conditional_nodes();
bool is_conditional(cudaGraphNodeType type);

// Captures the work that `work` enqueues on Runtime::compute() as the body of a conditional node, executed if *count >
// `above` at that point. The node is ordered with the other work of the compute stream, which must be capturing. `work`
// must not use another stream or record timed events: a body holds kernels, copies and memsets only.
void capture_if_above(Context& context, const float* count, float above, const std::function<void()>& work);

}  // namespace dtrain::cuda
