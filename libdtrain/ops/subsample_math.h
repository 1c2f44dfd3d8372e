// Index mapping of subsampled images, shared by the CPU and CUDA kernels.
#pragma once

#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

struct SubsampledImages {
  int64_t h, w, p, q, c;  // of x and of y
  int stride, offset;

  // Source in x of element i of y, or -1.
  DT_HD int64_t source(int64_t i) const {
    const int64_t column = offset + stride * (i / c % q), row = offset + stride * (i / c / q % p);
    return row < h && column < w ? ((i / c / q / p * h + row) * w + column) * c + i % c : -1;
  }
  // Target in y of element i of x, or -1.
  DT_HD int64_t target(int64_t i) const {
    const int64_t column = i / c % w - offset, row = i / c / w % h - offset;
    if (column < 0 || row < 0 || column % stride != 0 || row % stride != 0) return -1;
    return ((i / c / w / h * p + row / stride) * q + column / stride) * c + i % c;
  }
};

}  // namespace dtrain
