// Per-image arithmetic of drop_path, shared by the CPU and CUDA kernels.
#pragma once

#include "dtrain/core/step_scalars.h"
#include "dtrain/ops/drop_path.h"
#include "libdtrain/ops/pointwise_math.h"

namespace dtrain {

// Factor of all elements of an image.
DT_HD inline float drop_path_factor(const StepInputs& step, const DropPathOptions& options, uint64_t stream,
                                    int64_t image) {
  float rate = options.rate;
  if (options.steps > 0 && step.step < static_cast<uint64_t>(options.steps))
    rate *= static_cast<float>(step.step) / static_cast<float>(options.steps);
  return dropout_factor(dropout_words(step.seed, step.step, stream, static_cast<uint64_t>(image))[0], rate);
}

}  // namespace dtrain
