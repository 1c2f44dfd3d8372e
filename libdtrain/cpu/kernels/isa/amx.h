// AMX: matrix products of tile registers, 16 rows of 64 bytes each.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "libdtrain/core/float16.h"
#include "libdtrain/cpu/kernels/isa/tile_config.h"

namespace dtrain::cpu::DT_ISA {

// GCC's intrinsics take the number of a tile as a literal.
#define DT_SUM_TILE(instruction, ...)                                 \
  if constexpr (tile == 0) instruction(0 __VA_OPT__(, ) __VA_ARGS__); \
  if constexpr (tile == 1) instruction(1 __VA_OPT__(, ) __VA_ARGS__); \
  if constexpr (tile == 2) instruction(2 __VA_OPT__(, ) __VA_ARGS__); \
  if constexpr (tile == 3) instruction(3 __VA_OPT__(, ) __VA_ARGS__)
#define DT_TILE(instruction, ...)                                     \
  DT_SUM_TILE(instruction, __VA_ARGS__);                              \
  if constexpr (tile == 4) instruction(4 __VA_OPT__(, ) __VA_ARGS__); \
  if constexpr (tile == 5) instruction(5 __VA_OPT__(, ) __VA_ARGS__)

[[gnu::always_inline]] inline void tile_configure(const TileConfig& config) { _tile_loadconfig(&config); }
[[gnu::always_inline]] inline void tile_release() { _tile_release(); }
template <int tile>
[[gnu::always_inline]] inline void tile_zero() {
  DT_SUM_TILE(_tile_zero);
}
// Rows are `stride` bytes apart.
template <int tile>
[[gnu::always_inline]] inline void tile_load(const void* from, int64_t stride) {
  DT_TILE(_tile_loadd, from, stride);
}
template <int tile>
[[gnu::always_inline]] inline void tile_store(void* to, int64_t stride) {
  DT_SUM_TILE(_tile_stored, to, stride);
}
// Accumulator tile, 0 to 3, += tile 4 times tile 5: dot products of pairs of Bf16, or of quads of uint8_t and int8_t.
template <int tile, class T>
[[gnu::always_inline]] inline void tile_dot() {
  if constexpr (std::is_same_v<T, Bf16>) {
    DT_SUM_TILE(_tile_dpbf16ps, 4, 5);
  } else {
    DT_SUM_TILE(_tile_dpbusd, 4, 5);
  }
}

#undef DT_TILE
#undef DT_SUM_TILE

}  // namespace dtrain::cpu::DT_ISA
