// A convolution whose result is known in double precision, for a look at what a device computes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtrain/core/context.h"

namespace dtrain::info {

// A 3x3 convolution of small whole numbers, whose products all types hold exactly.
struct ConvolutionCase {
  static constexpr int64_t kImages = 2, kSize = 14, kChannels = 64;

  std::vector<float> x, w;       // [n, h, w, c] and [k, r, s, c]
  std::vector<double> y, terms;  // the output, and the sum of its terms' absolute values

  ConvolutionCase();
  // The largest difference from the reference, as a share of the sum of the terms' absolute values; infinity where a
  // value is not finite.
  double error_of(std::span<const float> output) const;
};

// What `context` computes of the case, its tensors being of `dtype`: f32 or f16.
std::vector<float> convolution_on(Context& context, const ConvolutionCase& convolution, DType dtype);

}  // namespace dtrain::info
