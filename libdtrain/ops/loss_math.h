// Per-element arithmetic of the softmax cross-entropy, shared by the CPU and the CUDA arm.
#pragma once

#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// The probability that the smoothed target gives to a class.
DT_HD inline float smoothed_target(bool is_label, int64_t classes, float smoothing) {
  return (is_label ? 1.0f - smoothing : 0.0f) + smoothing / static_cast<float>(classes);
}

// True where class `c` stands before the label in the order by logit; NaN, on either side, stands before it.
DT_HD inline bool outranks(float logit, int64_t c, float label_logit, int64_t label) {
  return !(logit <= label_logit) || (logit == label_logit && c < label);
}

}  // namespace dtrain
