// Which pixels nearest up-sampling makes of one, along one axis; shared by the arms.
#pragma once

#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

struct UpsampleAxis {
  int64_t in, out;

  DT_HD int64_t source(int64_t i) const { return i * in / out; }
  // The first i whose source is not before `pixel`: the copies of a pixel end where those of the next begin.
  DT_HD int64_t first_copy(int64_t pixel) const { return (pixel * out + in - 1) / in; }
};

}  // namespace dtrain
