// The shapes of AMX tile registers in a GEMM: 32 x 32 sums in four tiles, and one tile of either operand. Six of the
// eight tiles are used: with all of them ResNet-50's convolutions take 1.3 times as long on a core whose other
// hyper-thread works, as few registers are left to rename. Where a thread has a core to itself, loading one half of a
// panel again costs 2 %.
#pragma once

#include <cstdint>

namespace dtrain::cpu::DT_ISA {

inline constexpr int64_t kTileRows = 16, kTileWords = 16;  // at most, of a tile; words of 32 bits in a row
inline constexpr int64_t kWordBytes = 4;

// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 and 1: sums of the first rows, 2 and 3: of the rows after them, 4: 16 rows of A, 5: half a panel of B.
// `words` of the inner dimension.
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

}  // namespace dtrain::cpu::DT_ISA
