// Which memory is prefetched with which tile of a GEMM.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libdtrain/cpu/kernels/prefetch.h"

namespace dtrain::cpu {

// A range in `count` equal parts of whole cache lines; the last parts may be short or empty. There is one division for
// all parts: a 64-bit division takes up to 90 cycles on processors before Ice Lake.
class PrefetchSchedule {
 public:
  PrefetchSchedule() = default;
  PrefetchSchedule(const PrefetchRange& all, int64_t count)
      : all_(all), step_(count > 0 ? (all.bytes / kLine + count) / count * kLine : 0) {}

  PrefetchRange operator[](int64_t i) const {
    const int64_t begin = std::min(i * step_, all_.bytes);
    return {static_cast<const char*>(all_.from) + begin, std::min(step_, all_.bytes - begin)};
  }

 private:
  static constexpr int64_t kLine = 64;

  PrefetchRange all_;
  int64_t step_ = 0;
};

// Two ranges, one after the other: parts from number `count_of_first` on are parts of the second.
struct TwoRangeSchedule {
  PrefetchSchedule first, second;
  int64_t count_of_first = 0;

  PrefetchRange operator[](int64_t i) const { return i < count_of_first ? first[i] : second[i - count_of_first]; }
};

}  // namespace dtrain::cpu
