// Cache and register blocking of GEMM: budgets, tiles, and blocks of the depth K. The budgets are stated here once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libdtrain/cpu/gemm/matrix.h"

namespace dtrain::cpu {

// Second-level cache for the panels of B that stay there while rows of A pass, in bytes. AMX processors have 2 MiB.
inline constexpr int64_t kL2PanelBytes = int64_t{256} << 10, kAmxL2PanelBytes = int64_t{1} << 20;
// Rows of A in bytes that pass all panels of B at a time: more where the panels do not stay in that cache.
inline constexpr int64_t kL2RowBytes = int64_t{128} << 10, kL2RowBytesOfManyPanels = int64_t{256} << 10;
// The same for AMX, rows of A and of the result.
inline constexpr int64_t kAmxBlockBytes = int64_t{512} << 10, kAmxBlockBytesOfManyPanels = int64_t{768} << 10;
// Results from this size on do not stay in the caches until another op reads them: they are written by non-temporal
// stores, which need rows that are aligned to the vectors of every instruction set.
inline constexpr int64_t kNonTemporalBytes = int64_t{4} << 20;
inline constexpr uintptr_t kVectorBytes = 64;

// Whether a result of rows of `columns` elements is large and aligned enough for non-temporal stores of whole panels.
template <class T>
bool stores_past_caches(int64_t elements, int64_t columns, int64_t panel_columns, const T* y) {
  return elements * static_cast<int64_t>(sizeof(T)) >= kNonTemporalBytes && columns % panel_columns == 0 &&
         reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0;
}

// Part of a result that one thread computes: rows of A by panels of B.
struct BlockRange {
  int64_t first_row, last_row, first_panel, last_panel;

  int64_t panels() const { return last_panel - first_panel; }
};

// Packed micro-panels of B, contiguous.
struct PackedPanels {
  const void* data;
  int64_t bytes;  // of one panel, or of as many as a tile takes

  const void* at(int64_t panel) const { return static_cast<const char*>(data) + panel * bytes; }
};

// Register blocking: a tile is `rows` rows of A, of which the micro-kernel reads `rows_at_once` together, by `columns`
// columns of B, which are `panels` panels.
struct MicroTile {
  int64_t rows, rows_at_once, columns, panels = 1;
  bool splits_depth = false;  // whether the depth may be blocked, partial sums being stored in the result's type
};

// The tile of the micro-kernels GemmKernels or GemmKernelsU8S8 for a B of n columns: as many panels as a micro-kernel
// takes, or half as many until every thread has some.
template <class Kernels>
MicroTile micro_tile_of(int threads, const Kernels& gemm, int64_t n, bool splits_depth) {
  int64_t panels = gemm.panels;
  while (panels > 1 && n < threads * panels * gemm.columns) panels /= 2;
  return {gemm.rows, gemm.rows / panels, panels * gemm.columns, panels, splits_depth};
}

// A block of the depth K: elements [element, element + run) of each of the taps [tap, tap + taps).
struct DepthBlock {
  int64_t tap, taps, element, run;
  bool is_first, is_last;

  int64_t depth() const { return taps * run; }
};

// The depth of A in at most `most` blocks of about equal size: whole taps, or parts of the only run.
template <class T>
std::vector<DepthBlock> depth_blocks(const MatrixA<T>& a, int64_t most) {
  constexpr int64_t kUnit = 32;  // elements of a run that stay together
  const bool by_taps = a.taps > 1;
  const int64_t units = by_taps ? a.taps : std::max<int64_t>(a.run / kUnit, 1),
                count = std::clamp<int64_t>(most, 1, units);
  std::vector<DepthBlock> blocks;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = units * i / count, end = units * (i + 1) / count;
    const bool last = i + 1 == count;
    if (by_taps)
      blocks.push_back({begin, end - begin, 0, a.run, i == 0, last});
    else
      blocks.push_back({0, a.taps, begin * kUnit, (last ? a.run : end * kUnit) - begin * kUnit, i == 0, last});
  }
  return blocks;
}

}  // namespace dtrain::cpu
