// Per-element arithmetic of the softmax cross-entropy, shared by the CPU and the CUDA arm.
#pragma once

#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// The labels of a row.
struct LabelPair {
  int64_t main;   // negative: the row is masked
  int64_t other;  // -1: none
  float share;    // the main label's, at least half
};

// `partners` and `shares` null: no labels are mixed.
DT_HD inline LabelPair labels_of(const int32_t* labels, const int32_t* partners, const float* shares, int64_t n,
                                 int64_t row) {
  const int64_t own = labels[row];
  if (!partners || own < 0 || partners[row] < 0 || partners[row] >= n) return {own, -1, 1.0f};
  const int64_t other = labels[partners[row]];
  const float share = shares[row];
  if (other < 0 || other == own || share == 1.0f) return {own, -1, 1.0f};
  return share >= 0.5f ? LabelPair{own, other, share} : LabelPair{other, own, 1.0f - share};
}

// What the target without smoothing gives to a class.
DT_HD inline float share_of(const LabelPair& labels, int64_t c) {
  return c == labels.main ? labels.share : c == labels.other ? 1.0f - labels.share : 0.0f;
}

// The probability that the smoothed target gives to a class of such a share.
DT_HD inline float smoothed_target(float share, int64_t classes, float smoothing) {
  return (1.0f - smoothing) * share + smoothing / static_cast<float>(classes);
}

// The logit of the labels, by their shares: what is infinite counts only where it has a share.
template <class Real>
DT_HD inline Real mixed_logit(const LabelPair& labels, Real main, Real other) {
  if (labels.other < 0) return main;
  const auto share = static_cast<Real>(labels.share);
  return share * main + (1 - share) * other;
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
