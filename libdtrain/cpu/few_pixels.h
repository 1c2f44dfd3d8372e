// Gradients of convolutions where few pixels of dy differ from zero, as those of a loss over a sample of an image's
// cells.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// The pixels of dy [n, p, q, k] that are not all zeros, ascending, where they are so few that passing over the others
// is faster than any dense algorithm, and the shape is one that gemm_wgrad takes.
// T is float or Bf16.
template <class T>
std::optional<std::vector<int64_t>> few_pixels(const Context&, const ConvShape& shape, const T* dy);

// dx from the rows of dy of these pixels alone, stored or added.
void few_pixels_dgrad(Context&, const ConvShape&, const std::vector<int64_t>& pixels, const float* dy, const float* w,
                      float* dx, bool add);

}  // namespace dtrain::cpu
