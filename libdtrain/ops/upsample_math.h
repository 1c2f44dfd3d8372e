// Index mapping of nearest-neighbour up-sampling along one axis, shared by the CPU and CUDA kernels.
#pragma once

#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

// Both extents multiply to less than 2^31: integer division is slow on GPUs, above all in 64 bits.
struct UpsampleAxis {
  uint32_t in, out;

  UpsampleAxis(int64_t from, int64_t to) : in(static_cast<uint32_t>(from)), out(static_cast<uint32_t>(to)) {}
  DT_HD uint32_t source(uint32_t i) const { return i * in / out; }
  // First i whose source is >= `pixel`: end of the previous pixel's copies.
  DT_HD uint32_t first_copy(uint32_t pixel) const { return (pixel * out + in - 1) / in; }
};

}  // namespace dtrain
