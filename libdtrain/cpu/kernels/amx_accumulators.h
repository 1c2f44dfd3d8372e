// Register blocking of AMX GEMMs: 32 x 32 accumulators in four tile registers, and one tile of either operand. Six of
// the eight tiles are used: with all of them ResNet-50's convolutions take 1.3 times as long on a core whose other
// hyper-thread works, as few registers are left to rename. Where a thread has a core to itself, loading one half of a
// panel again costs 2 %.
#pragma once

#include "libdtrain/cpu/kernels/isa/isa.h"
#include "libdtrain/cpu/kernels/specialise.h"

namespace dtrain::cpu::DT_ISA {

// Tiles 0 and 1: accumulators of the first rows, 2 and 3: of the rows after them, 4: 16 rows of A, 5: half a panel of
// B. `words` of the inner dimension.
inline TileConfig gemm_tiles(int64_t rows, int64_t words) {
  TileConfig config;
  const auto shape = [&](int tile, int64_t tile_rows, int64_t row_words) {
    config.rows[tile] = static_cast<uint8_t>(tile_rows);
    config.row_bytes[tile] = static_cast<uint16_t>(row_words * kWordBytes);
  };
  for (int sum = 0; sum < 4; ++sum) shape(sum, rows, kTileWords);
  shape(4, rows, words), shape(5, words, kTileWords);
  return config;
}

// Calls body(Constant<tile>()) for the accumulator tiles: two for up to 16 rows, four for up to 32.
template <int tiles, class Body>
[[gnu::always_inline]] inline void for_each_accumulator(const Body& body) {
  body(Constant<0>()), body(Constant<1>());
  if constexpr (tiles == 4) body(Constant<2>()), body(Constant<3>());
}

template <int tiles>
[[gnu::always_inline]] inline void zero_accumulators() {
  for_each_accumulator<tiles>([](auto tile) __attribute__((always_inline)) { tile_zero<decltype(tile)::value>(); });
}

// The accumulators in memory: rows are `stride` elements apart, and tiles 2 and 3 begin at row `second`.
template <class T>
struct TiledMatrix {
  T* data;
  int64_t stride, second;

  template <int tile>
  [[gnu::always_inline]] T* at() const {
    return data + tile / 2 * second * stride + tile % 2 * kTileWords;
  }
};
template <int tiles, class T>
[[gnu::always_inline]] inline void load_accumulators(const TiledMatrix<T>& from) {
  for_each_accumulator<tiles>([&](auto tile) __attribute__((always_inline)) {
    tile_load<decltype(tile)::value>(from.template at<decltype(tile)::value>(), from.stride * kWordBytes);
  });
}
template <int tiles, class T>
[[gnu::always_inline]] inline void store_accumulators(const TiledMatrix<T>& to) {
  for_each_accumulator<tiles>([&](auto tile) __attribute__((always_inline)) {
    tile_store<decltype(tile)::value>(to.template at<decltype(tile)::value>(), to.stride * kWordBytes);
  });
}

}  // namespace dtrain::cpu::DT_ISA
