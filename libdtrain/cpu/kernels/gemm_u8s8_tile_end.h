// The end of a tile of sums of bytes: what it reads and writes is brought into the cache while the sums are made.
#pragma once

#include "libdtrain/cpu/kernels/gemm_u8s8.h"
#include "libdtrain/cpu/kernels/requantize.h"

namespace dtrain::cpu::DT_ISA {

inline constexpr int kByteColumns = 2 * kLanes;

// Of R rows and P panels.
template <int R, int P>
using ByteSums = Ints[R][2 * P];

// Rows [first, first + R) of those gathered.
template <int R, int P>
struct ByteTileEnd {
  const IndirectGemmU8S8& g;
  int64_t first;

  int64_t offset(int r) const { return (first + r) * g.y_stride; }

  template <class T>
  [[gnu::always_inline]] void fetch(const T* from, bool written) const {
    constexpr auto kLine = static_cast<int>(64 / sizeof(T));
    if (!from) return;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < P * kByteColumns; i += kLine) {
        const T* const at = from + offset(r) + i;
        written ? __builtin_prefetch(at, 1) : __builtin_prefetch(at);
      }
  }
  // Lines that are only reached at the end.
  [[gnu::always_inline]] void fetch_lines() const {
    fetch(g.y.bytes, true);
    fetch(g.y.floats, true);
    fetch(g.end.residual_bytes, false);
    fetch(g.end.residual, false);
  }
  [[gnu::always_inline]] void end_rows(const ByteSums<R, P>& sum) const {
    const int64_t begin = offset(0), stride = g.y_stride;  // copies, as those of ByteRowEnd
#pragma GCC unroll 2
    for (int panel = 0; panel < P; ++panel)
      with_requantize_row(
          g.end, g.y, panel * kByteColumns, [&](const auto& end) __attribute__((always_inline)) {
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) end(begin + r * stride, sum[r][2 * panel], sum[r][2 * panel + 1]);
          });
  }
  // Ends the columns that are valid.
  [[gnu::noinline]] void end_part_of_rows(const ByteSums<R, P>& sum) const {
    for (int panel = 0; panel < P; ++panel)
      for (int r = 0; r < R; ++r)
        finish_partial_row(g.end, panel * kByteColumns, offset(r), g.valid, sum[r][2 * panel], sum[r][2 * panel + 1],
                           g.y);
  }
  [[gnu::always_inline]] void operator()(const ByteSums<R, P>& sum) const {
    if (g.valid >= P * kByteColumns && fast_requantize_suffices(g.end, g.y)) return end_rows(sum);
    ByteSums<R, P> copy;  // so that those above have no address and stay in registers
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < 2 * P; ++i) copy[r][i] = sum[r][i];
    end_part_of_rows(copy);
  }
};

}  // namespace dtrain::cpu::DT_ISA
