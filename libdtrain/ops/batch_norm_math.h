// The arithmetic of batch_norm per element and per channel, shared by its arms.
#pragma once

#include <cmath>
#include <cstdint>

#include "libdtrain/core/host_device.h"
#include "libdtrain/core/moments.h"

namespace dtrain {

// The moments of `count` numbers from their sum and the sum of their squares. The difference cancels where the mean is
// large beside the deviation: the variance has then a relative error of (1 + mean^2 / variance) times that of the sums.
// That is harmless for sums in double. Those that a convolution makes of its f16 output are in float: the variance
// loses log2(1 + mean^2 / variance) of its 24 bits beside what the summation itself rounds off, seven where the mean
// is eleven deviations. A convolution's output, from weights with both signs, has a mean of a deviation or so.
DT_HD inline Moments moments_of(double sum, double square, double count) {
  const double mean = sum / count, deviation = square - sum * mean;
  return {count, mean, deviation > 0 ? deviation : 0};
}

// What ranks tell each other about a channel: the sums of x - pivot and of its square, for a pivot that all of them
// know. They and the count are added up in f32. The pivot is the mean of their means: squares of no more than the
// spread of those, which the variance contains, cancel then.
struct PivotSums {
  double sum = 0, square = 0;
};
DT_HD inline PivotSums sums_about(double pivot, const Moments& own) {
  const double shift = own.mean - pivot;
  return {own.count * shift, own.deviation + own.count * shift * shift};
}
// The moments from the sums of all ranks.
DT_HD inline Moments moments_about(double pivot, const PivotSums& sums, double count) {
  const Moments shifted = moments_of(sums.sum, sums.square, count);
  return {count, pivot + shifted.mean, shifted.deviation};
}

DT_HD inline float inverse_deviation(double variance, float epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + epsilon));
}

// One element; scale = gamma * inv_std. Subtracting the mean first keeps the digits of x where the mean is large.
// T is float, or a vector of them.
template <class T>
DT_HD inline T normalize(T x, T mean, T scale, T beta) {
  return (x - mean) * scale + beta;
}

// dx of one element from dz, the gradient at the activation's input. With batch statistics
//   mean_dz = mean(dz),  slope = inv_std^2 * mean(dz * (x - mean));
// with constant ones both are 0, and x does not matter.
template <class T>
DT_HD inline T normalize_grad(T dz, T x, T mean, T scale, T mean_dz, T slope) {
  return scale * (dz - mean_dz - (x - mean) * slope);
}

// Channels that one access of a GPU moves: as many as 16 bytes hold, or one where c is not a multiple of that.
DT_HD inline int channels_per_access(int64_t c, int64_t element_bytes) {
  const int64_t lanes = 16 / element_bytes;
  return c % lanes == 0 ? static_cast<int>(lanes) : 1;
}

// The new running statistic.
DT_HD inline float blend(float running, float batch, float momentum) {
  return momentum * running + (1 - momentum) * batch;
}

}  // namespace dtrain
