// Arithmetic of local response normalisation, shared by the CPU and CUDA kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtrain/core/host_device.h"
#include "dtrain/ops/local_response_norm.h"

namespace dtrain {

// Sum of term(j) over the window of channels around `c`.
template <class Term>
DT_HD inline float sum_around(int64_t c, int64_t channels, int radius, Term&& term) {
  const int64_t begin = c < radius ? 0 : c - radius, end = c + radius < channels ? c + radius + 1 : channels;
  float sum = 0;
  for (int64_t j = begin; j < end; ++j) sum += term(j);
  return sum;
}

// Contribution of a channel to the gradients of its neighbours.
DT_HD inline float response_term(float dy, float x, float s, float beta) { return dy * x * std::pow(s, -beta) / s; }

DT_HD inline float response_grad(float dy, float x, float s, float terms, const LocalResponseNormOptions& o) {
  return dy * std::pow(s, -o.beta) - 2 * o.alpha * o.beta * x * terms;
}

}  // namespace dtrain
