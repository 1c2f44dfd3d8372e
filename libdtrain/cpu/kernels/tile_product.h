// The micro-kernels of products by tile registers (AMX): 16 rows by 64 bytes, and sums of 16 by 16. They take the
// panels of product.h and product_int8.h, and rows of the left-hand side that lie a constant distance apart.
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/product.h"
#include "libdtrain/cpu/kernels/product_int8.h"

namespace dtrain::cpu {

// Row i of the result is the sum over `taps` runs of k elements each, of run t from at[t] + i * step on, times the
// panel. T is Bf16 or uint8_t.
template <class T>
struct TiledRows {
  int64_t rows;     // any number
  int64_t taps, k;  // k: whole words of 32 bits
  const T* const* at;
  int64_t step;
  const void* panel;
  const int64_t* places;  // [rows]: where each begins in y, and in the residual; negative: it is not stored
  int64_t valid;          // columns that are stored, from 1 to `columns`
  Upcoming upcoming{};
};

// Panels [depth][columns] of pairs, turned: [columns][row], of which `depth` are there, a multiple of 16.
struct TurnedPanels {
  int64_t count, depth;
  const Bf16Pair* data;
  int64_t row, step;  // pairs from one row to the next, and from one panel
};

// The place of a row is that in `y` and in the residual. Null where the set has no tile registers.
struct TileKernels {
  // `streams`: as in GatheredRows.
  void (*pairs)(const TiledRows<Bf16>&, const EndOf<Bf16>&, Bf16* y, bool streams) = nullptr;
  void (*bytes)(const TiledRows<uint8_t>&, const ByteEnd&, const ByteTarget& y) = nullptr;
  // Turns one panel [depth][columns]; rows of `to` are `row` pairs apart.
  void (*turn)(int64_t depth, const Bf16Pair* panel, Bf16Pair* to, int64_t row) = nullptr;
  // y [count * columns][columns] = or += the products of the turned panels and panel b [depth][columns].
  void (*turned_by_pairs)(const TurnedPanels&, const Bf16Pair* b, float* y, int64_t y_stride, bool add,
                          const Upcoming&) = nullptr;
};

}  // namespace dtrain::cpu
