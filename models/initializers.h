// Weight initialisers of TensorFlow.
#pragma once

#include <cmath>

#include "dtrain/autograd/parameter.h"

namespace dtrain::models {

// tf.variance_scaling_initializer(): truncated normal with weight variance 1 / fan_in. Truncation at two standard
// deviations reduces the deviation by a factor of 0.8796.
inline Init variance_scaling(int64_t fan_in) {
  return Init::truncated_normal(std::sqrt(1.0f / static_cast<float>(fan_in)) / 0.87962566103423978f);
}

// tf.glorot_uniform_initializer(): U(-b, b) with b = sqrt(6 / (in + out)) (Glorot and Bengio 2010).
inline Init glorot_uniform(int64_t in, int64_t out) {
  return Init::uniform(std::sqrt(6.0f / static_cast<float>(in + out)));
}

}  // namespace dtrain::models
