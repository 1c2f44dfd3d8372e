// Moments: mean and variance of data in parts, merged without cancellation.
#pragma once

#include "dtrain/core/host_device.h"

namespace dtrain {

// Count, mean and sum of squared deviations.
struct Moments {
  double count = 0, mean = 0, deviation = 0;
};

// Moments of the union (Chan, Golub and LeVeque 1979), without cancellation.
DT_HD inline Moments merge(const Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  if (count == 0) return {};
  const double share = b.count / count, shift = b.mean - a.mean;
  return {count, a.mean + shift * share, a.deviation + b.deviation + shift * shift * a.count * share};
}

}  // namespace dtrain
