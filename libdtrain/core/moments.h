// Mean and deviation of numbers that come in parts.
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

}  // namespace dtrain
