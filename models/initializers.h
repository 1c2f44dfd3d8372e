// The initial weights of TensorFlow's layers.
#pragma once

#include <cmath>

#include "libdtrain/autograd/parameter.h"

namespace dtrain::models {

// tf.variance_scaling_initializer(): the variance of a weight is 1 / fan_in. Its normal distribution is cut at two
// standard deviations, which takes a factor of 0.8796 off the deviation.
inline Init variance_scaling(int64_t fan_in) {
  return Init::truncated_normal(std::sqrt(1.0f / static_cast<float>(fan_in)) / 0.87962566103423978f);
}

// tf.glorot_uniform_initializer(): U(-b, b) with b = sqrt(6 / (in + out)) (Glorot and Bengio 2010).
inline Init glorot_uniform(int64_t in, int64_t out) {
  return Init::uniform(std::sqrt(6.0f / static_cast<float>(in + out)));
}

}  // namespace dtrain::models
