// Per-element arithmetic of the softmax cross-entropy, shared by the CPU and CUDA kernels.
#pragma once

#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

// The labels of a row.
struct LabelPair {
  int64_t main;   // negative: the row is masked
  int64_t other;  // -1: none
  float share;    // weight of the main label, at least 1/2
};

// `partners` and `shares` null: no mixing.
DT_HD inline LabelPair labels_of(const int32_t* labels, const int32_t* partners, const float* shares, int64_t n,
                                 int64_t row) {
  const int64_t own = labels[row];
  if (!partners || own < 0 || partners[row] < 0 || partners[row] >= n) return {own, -1, 1.0f};
  const int64_t other = labels[partners[row]];
  const float share = shares[row];
  if (other < 0 || other == own || share == 1.0f) return {own, -1, 1.0f};
  return share >= 0.5f ? LabelPair{own, other, share} : LabelPair{other, own, 1.0f - share};
}

// Target probability of a class before smoothing.
DT_HD inline float share_of(const LabelPair& labels, int64_t c) {
  return c == labels.main ? labels.share : c == labels.other ? 1.0f - labels.share : 0.0f;
}

// Target probability of a class with label smoothing.
DT_HD inline float smoothed_target(float share, int64_t classes, float smoothing) {
  return (1.0f - smoothing) * share + smoothing / static_cast<float>(classes);
}

// Expected logit under the target; infinite logits count only where the target is positive.
template <class Real>
DT_HD inline Real mixed_logit(const LabelPair& labels, Real main, Real other) {
  if (labels.other < 0) return main;
  const auto share = static_cast<Real>(labels.share);
  return share * main + (1 - share) * other;
}

// Loss of a row from log(sum(exp(z))), z[label] and mean(z), all shifted by the same constant. Without smoothing the
// mean is unused and may be infinite.
template <class Real>
DT_HD inline Real cross_entropy(Real log_sum, Real label_logit, Real mean, Real smoothing) {
  if (smoothing == 0) return log_sum - label_logit;
  return log_sum - (1 - smoothing) * label_logit - smoothing * mean;
}

// Gradient of a logit; `factor`: dloss / unmasked rows.
DT_HD inline float cross_entropy_grad(float factor, float probability, float target) {
  return factor * (probability - target);
}

// Whether class `c` ranks before the label by logit; NaN, on either side, ranks before the label.
DT_HD inline bool outranks(float logit, int64_t c, float label_logit, int64_t label) {
  return !(logit <= label_logit) || (logit == label_logit && c < label);
}

// 1 if fewer than k classes outrank the label (`rank` of them do); 0 for a NaN logit.
DT_HD inline float hit(int64_t rank, int64_t k, float label_logit) {
  return rank < k && label_logit == label_logit ? 1.0f : 0.0f;
}

}  // namespace dtrain
