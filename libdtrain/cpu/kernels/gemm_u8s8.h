// The micro-kernels of products of bytes: rows of unsigned activations, signed filters packed once and used often, and
// sums of 32 bits, which are exact in all instruction sets. The filters come in panels of as many columns as two
// vectors of floats hold, four products of a column side by side: [k / 4][columns][4].
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/prefetch.h"

namespace dtrain::cpu {

// Bytes whose products one addition takes: their channels come in so many.
inline constexpr int64_t kQuad = 4;
// Sums of more products of a byte and a filter's could exceed 32 bits.
inline constexpr int64_t kMaxInt8Depth = 65536;

// y = max(floor, sum * scale + shift + residual * residual_scale). Bytes of y are that, rounded to nearest, ties to
// even, and kept within 0 to 255.
struct Requantize {
  const float* scale = nullptr;  // [columns] each for every panel with valid columns
  const float* shift = nullptr;
  const uint8_t* residual_bytes = nullptr;  // rows as far apart as those of y; null: none. At most one of the two.
  const float* residual = nullptr;
  float residual_scale = 1;
  float floor = 0;
};

// Where results go; one of the two is null.
struct RequantizeOutput {
  uint8_t* bytes;
  float* floats;
};

// As GatheredRows of product.h, for bytes.
struct IndirectGemmU8S8 {
  int64_t rows, taps, k;  // at most `rows` of a tile; k: bytes of a run, a multiple of 4
  const uint8_t* const* at;
  int64_t row_step;
  const int8_t* panel;
  int64_t panel_step;  // bytes to the next panel
  RequantizeOutput y;
  int64_t y_stride;  // elements
  int64_t valid;     // columns that are stored, from 1 to those of `panels` panels
  Requantize end;
  PrefetchRange prefetch{};
};

struct GemmKernelsU8S8 {
  int rows, columns;  // of a tile
  int panels;         // that gathered_rows takes at a time, at most
  // To which the bytes 2 i and 2 i + 1 of a column may add up, and no less than its negative, so that sums are exact.
  int max_pair_sum;
  void (*indirect)(const IndirectGemmU8S8&);
  // to[i] = x[i] * scale + zero, rounded to nearest, ties to even, and kept within 0 to 255
  void (*quantize)(int64_t count, const float* x, float scale, float zero, uint8_t* to);
};

}  // namespace dtrain::cpu
