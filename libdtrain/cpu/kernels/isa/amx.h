// AMX: matrix products of tile registers, 16 rows of 64 bytes each.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "dtrain/core/float16.h"
#include "libdtrain/cpu/kernels/isa/tile_config.h"

namespace dtrain::cpu::DT_ISA {

[[gnu::always_inline]] inline void tile_configure(const TileConfig& config) { _tile_loadconfig(&config); }
[[gnu::always_inline]] inline void tile_release() { _tile_release(); }
// Assembly, because GCC's intrinsics take no template parameter as the number of a tile.
template <int tile>
[[gnu::always_inline]] inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
// Rows are `stride` bytes apart.
template <int tile>
[[gnu::always_inline]] inline void tile_load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile));
}
template <int tile>
[[gnu::always_inline]] inline void tile_store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
}
// Accumulator tile, 0 to 3, += tile 4 times tile 5: dot products of pairs of Bf16, or of quads of uint8_t and int8_t.
template <int tile, class T>
[[gnu::always_inline]] inline void tile_dot() {
  if constexpr (std::is_same_v<T, Bf16>)
    asm volatile("tdpbf16ps %%tmm5, %%tmm4, %%tmm%c0" ::"i"(tile));
  else
    asm volatile("tdpbusd %%tmm5, %%tmm4, %%tmm%c0" ::"i"(tile));
}

}  // namespace dtrain::cpu::DT_ISA
