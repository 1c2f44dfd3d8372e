// Where the output pixels of a convolution are stored.
#pragma once

#include <cstdint>

#include "libdtrain/cpu/direct_conv.h"

namespace dtrain::cpu {

// Output pixel (i, j) of image m is element first + m * image + i * row + j * pixel.
struct Places {
  int64_t first, image, row, pixel;

  bool operator==(const Places&) const = default;

  // One after the other.
  static Places in_order(const ConvShape& o) { return {0, o.p * o.q * o.k, o.q * o.k, o.k}; }
};

}  // namespace dtrain::cpu
