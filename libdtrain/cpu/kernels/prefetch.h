// Software prefetches, spread over the arithmetic of a kernel.
#pragma once

#include <cstdint>

namespace dtrain::cpu {

// Memory to prefetch into the second-level cache; none where `bytes` is 0.
struct PrefetchRange {
  const void* from = nullptr;
  int64_t bytes = 0;
};

#ifdef DT_ISA
namespace DT_ISA {

inline constexpr int64_t kLineBytes = 64;

// Prefetches a range in `parts` parts: all at once they would wait for free line-fill buffers.
class Prefetcher {
 public:
  [[gnu::always_inline]] Prefetcher(const PrefetchRange& range, int64_t parts)
      : at_(static_cast<const char*>(range.from)),
        end_(at_ + range.bytes),
        step_(kLineBytes * lines_of_part(range.bytes / kLineBytes, parts)) {}

  // Prefetches the next part.
  [[gnu::always_inline]] void fetch() {
    for (const char* const last = at_ + step_; at_ < last && at_ < end_; at_ += kLineBytes)
      __builtin_prefetch(at_, 0, 2);
  }

 private:
  // Divides 32 bits, as a 64-bit division takes up to 90 cycles, and only where there are more lines than parts.
  [[gnu::always_inline]] static int64_t lines_of_part(int64_t lines, int64_t parts) {
    if (lines <= parts) return lines > 0;
    return static_cast<uint32_t>(lines + parts - 1) / static_cast<uint32_t>(parts);
  }

  const char *at_, *end_;
  int64_t step_;
};

// Prefetches `count` elements of a row into the first-level cache.
template <int count, bool kWritten = false, class T>
[[gnu::always_inline]] inline void prefetch_row(const T* row) {
#pragma GCC unroll 8
  for (int i = 0; i < count; i += kLineBytes / sizeof(T)) __builtin_prefetch(row + i, kWritten);
}

}  // namespace DT_ISA
#endif

}  // namespace dtrain::cpu
