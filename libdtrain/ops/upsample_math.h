// Which pixels nearest up-sampling makes of one, along one axis; shared by the arms.
#pragma once

#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// The product of both extents is below 2^31: a GPU is slow to divide, above all 64 bits.
struct UpsampleAxis {
  uint32_t in, out;

  UpsampleAxis(int64_t from, int64_t to) : in(static_cast<uint32_t>(from)), out(static_cast<uint32_t>(to)) {}
  DT_HD uint32_t source(uint32_t i) const { return i * in / out; }
  // The first i whose source is not before `pixel`: the copies of a pixel end where those of the next begin.
  DT_HD uint32_t first_copy(uint32_t pixel) const { return (pixel * out + in - 1) / in; }
};

}  // namespace dtrain
