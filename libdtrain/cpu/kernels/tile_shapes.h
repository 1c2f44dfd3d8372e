// The shapes of tile registers.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace dtrain::cpu::DT_ISA {

inline constexpr int64_t kTileRows = 16, kTileWords = 16;  // at most, of a tile; words of 32 bits in a row
inline constexpr int64_t kWordBytes = 4;

// The memory that LDTILECFG reads.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 to 3 are sums: 0 and 1 of the first rows, 2 and 3 of those after them; 4 and 5 are those rows, 6 and 7 the
// columns of a panel. `words`: of a piece of the inner dimension.
inline void shape_tiles(int64_t first_rows, int64_t second_rows, int64_t words) {
  TileShapes shapes;
  const auto shape = [&](int tile, int64_t rows, int64_t row_words) {
    shapes.rows[tile] = static_cast<uint8_t>(rows);
    shapes.row_bytes[tile] = static_cast<uint16_t>(row_words * kWordBytes);
  };
  shape(0, first_rows, kTileWords), shape(1, first_rows, kTileWords), shape(4, first_rows, words);
  if (second_rows > 0)
    shape(2, second_rows, kTileWords), shape(3, second_rows, kTileWords), shape(5, second_rows, words);
  shape(6, words, kTileWords), shape(7, words, kTileWords);
  _tile_loadconfig(&shapes);
}

}  // namespace dtrain::cpu::DT_ISA
