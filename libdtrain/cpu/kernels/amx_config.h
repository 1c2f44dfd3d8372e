// The shapes of tile registers. Six are used, although there are eight: a core whose other thread works has few to
// rename, and the convolutions of ResNet-50 by all eight take 1.3 times as long there; where a thread has a core to
// itself it costs 2 % to load one of the panel's halves again.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace dtrain::cpu::DT_ISA {

inline constexpr int64_t kTileRows = 16, kTileWords = 16;  // at most, of a tile; words of 32 bits in a row
inline constexpr int64_t kWordBytes = 4;

// The memory that LDTILECFG reads.
struct alignas(64) AmxTileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 to 3 are sums: 0 and 1 of the first rows, 2 and 3 of those after them; 4 is 16 of those rows, 5 as many
// columns of a panel. `words`: of a piece of the inner dimension.
inline void configure_tiles(int64_t rows, int64_t words) {
  AmxTileConfig shapes;
  const auto shape = [&](int tile, int64_t tile_rows, int64_t row_words) {
    shapes.rows[tile] = static_cast<uint8_t>(tile_rows);
    shapes.row_bytes[tile] = static_cast<uint16_t>(row_words * kWordBytes);
  };
  for (int sums = 0; sums < 4; ++sums) shape(sums, rows, kTileWords);
  shape(4, rows, words), shape(5, words, kTileWords);
  _tile_loadconfig(&shapes);
}

}  // namespace dtrain::cpu::DT_ISA
