// Per-element arithmetic of the softmax cross-entropy, shared by the CPU and the CUDA arm.
#pragma once

#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// The probability that the smoothed target gives to a class.
DT_HD inline float smoothed_target(bool is_label, int64_t classes, float smoothing) {
  return (is_label ? 1.0f - smoothing : 0.0f) + smoothing / static_cast<float>(classes);
}

// The loss of a row, from log(sum(exp(z))), z[label] and the mean of z, all of them for z less the same number. Without
// smoothing the mean has no part in it: it may be infinite.
template <class Real>
DT_HD inline Real cross_entropy(Real log_sum, Real label_logit, Real mean, Real smoothing) {
  if (smoothing == 0) return log_sum - label_logit;
  return log_sum - (1 - smoothing) * label_logit - smoothing * mean;
}

// The gradient by a logit of a row's share of the loss; `factor`: dloss / rows that count.
DT_HD inline float cross_entropy_grad(float factor, float probability, float target) {
  return factor * (probability - target);
}

// True where class `c` stands before the label in the order by logit; NaN, on either side, stands before it.
DT_HD inline bool outranks(float logit, int64_t c, float label_logit, int64_t label) {
  return !(logit <= label_logit) || (logit == label_logit && c < label);
}

// 1 where a label that `rank` classes outrank is among the first k; one with a logit of NaN never is.
DT_HD inline float hit(int64_t rank, int64_t k, float label_logit) {
  return rank < k && label_logit == label_logit ? 1.0f : 0.0f;
}

}  // namespace dtrain
