// Score order, shared by the CPU and CUDA kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

// Unique sortable key of a score and its index: larger score first, then lower index. -0 equals 0, NaN counts as
// -infinity.
class ScoreKey {
 public:
  DT_HD static uint64_t of(float score, int64_t index) {
    const auto bits = std::bit_cast<uint32_t>(score != score ? -INFINITY : score + 0.0f);
    const uint32_t ordered = bits & kSign ? ~bits : bits | kSign;
    return uint64_t{ordered} << 32 | (0xffffffff - static_cast<uint32_t>(index));
  }
  DT_HD static float score(uint64_t key) {
    const auto ordered = static_cast<uint32_t>(key >> 32);
    return std::bit_cast<float>(ordered & kSign ? ordered ^ kSign : ~ordered);
  }
  DT_HD static int32_t index(uint64_t key) { return static_cast<int32_t>(0xffffffff - static_cast<uint32_t>(key)); }

 private:
  static constexpr uint32_t kSign = 0x80000000;
};

}  // namespace dtrain
