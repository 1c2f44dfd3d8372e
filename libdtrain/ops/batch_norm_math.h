// The arithmetic of batch_norm per element and per channel, shared by its arms.
#pragma once

#include "libdtrain/core/host_device.h"

namespace dtrain {

// Count, mean and sum of squared deviations of a set of numbers.
struct Moments {
  double count = 0, mean = 0, deviation = 0;
};

// The moments of the union (Chan, Golub and LeVeque 1979): no cancellation, whatever the mean.
DT_HD inline Moments merge(const Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  if (count == 0) return {};
  const double share = b.count / count, shift = b.mean - a.mean;
  return {count, a.mean + shift * share, a.deviation + b.deviation + shift * shift * a.count * share};
}

// One element; scale = gamma * inv_std. Subtracting the mean first keeps the digits of x where the mean is large.
// T is float, or a vector of them.
template <class T>
DT_HD inline T normalize(T x, T mean, T scale, T beta) {
  return (x - mean) * scale + beta;
}

// dx of one element from dz, the gradient behind the activation. With batch statistics
//   mean_dz = mean(dz),  slope = inv_std^2 * mean(dz * (x - mean));
// with constant ones both are 0, and x does not matter.
template <class T>
DT_HD inline T normalize_grad(T dz, T x, T mean, T scale, T mean_dz, T slope) {
  return scale * (dz - mean_dz - (x - mean) * slope);
}

// The new running statistic.
DT_HD inline float blend(float running, float batch, float momentum) {
  return momentum * running + (1 - momentum) * batch;
}

}  // namespace dtrain
