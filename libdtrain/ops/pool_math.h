// Which cells a pooling window covers and which windows cover a cell, along one axis, and who wins a window; shared by
// the arms.
#pragma once

#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

struct PoolRange {
  int64_t begin, end;
};

// One axis of a pooling: `in` cells, `out` windows.
struct PoolAxis {
  int64_t in, out;
  int kernel, stride, padding;

  // First cell of window `p`; may be in the padding, so below 0.
  DT_HD int64_t start(int64_t p) const { return p * stride - padding; }
  // The cells of window `p` inside the image. Not empty: the padding is smaller than the kernel.
  DT_HD PoolRange cells(int64_t p) const {
    const int64_t begin = start(p), end = begin + kernel;
    return {begin > 0 ? begin : 0, end < in ? end : in};
  }
  // The windows that cover cell `i`; may be empty.
  DT_HD PoolRange windows(int64_t i) const {
    const int64_t last = i + padding, first = last - kernel + 1;
    const int64_t begin = first > 0 ? (first + stride - 1) / stride : 0, end = last / stride + 1;
    return {begin, end < out ? end : out};
  }
};

// True where `value` takes the lead from `best`, which came before it: only a larger one does, and NaN, to be seen.
DT_HD inline bool wins_window(float value, float best) { return value > best || value != value; }

}  // namespace dtrain
