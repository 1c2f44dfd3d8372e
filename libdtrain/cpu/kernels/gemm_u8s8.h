// GEMM micro-kernels for int8: unsigned activations times signed filters, with 32-bit sums that are exact in all
// instruction sets. Filters are packed into micro-panels of quads: [k / 4][columns][4].
#pragma once

#include <cstdint>

#include "libdtrain/cpu/kernels/prefetch.h"

namespace dtrain::cpu {

// Bytes of a 32-bit word of the inner dimension; channels are padded to a multiple.
inline constexpr int64_t kQuad = 4;
// Largest inner dimension whose sums cannot overflow 32 bits.
inline constexpr int64_t kMaxInt8Depth = 65536;

// Requantisation: y = max(floor, sum * scale + shift + residual * residual_scale). Bytes of y are rounded to nearest,
// ties to even, and saturate to 0 ... 255.
struct Requantize {
  const float* scale = nullptr;  // [columns] each for every panel with valid columns
  const float* shift = nullptr;
  const uint8_t* residual_bytes = nullptr;  // rows as far apart as those of y; null: none. At most one of the two.
  const float* residual = nullptr;
  float residual_scale = 1;
  float floor = 0;
};

// The destination; one of the two is null.
struct RequantizeOutput {
  uint8_t* bytes;
  float* floats;
};

// As IndirectGemm, for bytes.
struct IndirectGemmU8S8 {
  int64_t rows, taps, k;  // at most `rows` of the kernel's block; k: bytes of a run, a multiple of 4
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
  int rows, columns;  // of a register block
  int panels;         // that `indirect` takes, at most
  // Bound on |bytes 2 i + bytes 2 i + 1| of a column of B, within which sums are exact.
  int max_pair_sum;
  void (*indirect)(const IndirectGemmU8S8&);
  // to[i] = x[i] * scale + zero, rounded to nearest, ties to even, saturated to 0 ... 255
  void (*quantize)(int64_t count, const float* x, float scale, float zero, uint8_t* to);
};

}  // namespace dtrain::cpu
