// Arithmetic of batch norm per element and per channel, shared by the CPU and CUDA kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtrain/core/host_device.h"
#include "libdtrain/core/moments.h"

namespace dtrain {

// Moments of `count` numbers from their sum and sum of squares. Cancellation multiplies the relative error of the sums
// by 1 + mean^2 / variance. This is harmless in double. Sums fused into f16 convolutions are in float: the variance
// loses log2(1 + mean^2 / variance) of its 24 bits, 7 for a mean of 11 standard deviations. Outputs of convolutions
// usually have a mean of about one standard deviation.
DT_HD inline Moments moments_of(double sum, double square, double count) {
  const double mean = sum / count, deviation = square - sum * mean;
  return {count, mean, deviation > 0 ? deviation : 0};
}

// Sums of a channel that synchronised batch norm all-reduces in f32: of x - pivot and of its square. The pivot, equal
// on all ranks, is the mean of the ranks' means. The spread of these means bounds the cancellation.
struct PivotSums {
  double sum = 0, square = 0;
};
DT_HD inline PivotSums sums_about(double pivot, const Moments& own) {
  const double shift = own.mean - pivot;
  return {own.count * shift, own.deviation + own.count * shift * shift};
}
// Moments from the sums of all ranks.
DT_HD inline Moments moments_about(double pivot, const PivotSums& sums, double count) {
  const Moments shifted = moments_of(sums.sum, sums.square, count);
  return {count, pivot + shifted.mean, shifted.deviation};
}

DT_HD inline float inverse_deviation(double variance, float epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + epsilon));
}

// Normalises one element; scale = gamma * inv_std. The mean is subtracted first, against cancellation for large means.
// T is float or a vector of floats.
template <class T>
DT_HD inline T normalize(T x, T mean, T scale, T beta) {
  return (x - mean) * scale + beta;
}

// dx of one element from dz, the gradient of the activation's input. With batch statistics
//   mean_dz = mean(dz),  slope = inv_std^2 * mean(dz * (x - mean));
// with constant statistics both are 0 and x is unused.
template <class T>
DT_HD inline T normalize_grad(T dz, T x, T mean, T scale, T mean_dz, T slope) {
  return scale * (dz - mean_dz - (x - mean) * slope);
}

// Channels per memory access on a GPU: 16 bytes, or one channel if c is not a multiple of that.
DT_HD inline int channels_per_access(int64_t c, int64_t element_bytes) {
  const int64_t lanes = 16 / element_bytes;
  return c % lanes == 0 ? static_cast<int>(lanes) : 1;
}

// New running statistic.
DT_HD inline float blend(float running, float batch, float momentum) {
  return momentum * running + (1 - momentum) * batch;
}

}  // namespace dtrain
