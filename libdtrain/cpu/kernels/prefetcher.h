// Prefetches between the arithmetic of kernels.
#pragma once

#include "libdtrain/cpu/kernels/prefetch.h"

namespace dtrain::cpu::DT_ISA {

// What is read soon is brought into the second-level cache in as many parts as there are pieces of arithmetic to spread
// them over: all at once they would wait for free buffers.
class Prefetcher {
 public:
  [[gnu::always_inline]] Prefetcher(const PrefetchRange& prefetch, int64_t parts)
      : at_(static_cast<const char*>(prefetch.from)),
        end_(at_ + prefetch.bytes),
        step_(kLine * lines_of_part(prefetch.bytes / kLine, parts)) {}

  [[gnu::always_inline]] void fetch() {
    for (const char* const last = at_ + step_; at_ < last && at_ < end_; at_ += kLine) __builtin_prefetch(at_, 0, 2);
  }

 private:
  static constexpr int64_t kLine = 64;

  // The division is of 32 bits, because one of 64 takes up to 90 cycles; where there are no more lines than parts, none
  // is needed.
  [[gnu::always_inline]] static int64_t lines_of_part(int64_t lines, int64_t parts) {
    if (lines <= parts) return lines > 0;
    return static_cast<uint32_t>(lines + parts - 1) / static_cast<uint32_t>(parts);
  }

  const char *at_, *end_;
  int64_t step_;
};

}  // namespace dtrain::cpu::DT_ISA
