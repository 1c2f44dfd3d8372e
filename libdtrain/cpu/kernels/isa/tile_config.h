// The limits and the configuration of AMX tile registers.
#pragma once

#include <cstdint>

namespace dtrain::cpu::DT_ISA {

inline constexpr int64_t kTileRows = 16,
                         kTileWords = 16;  // at most, of a tile; words of 32 bits in a row
inline constexpr int64_t kWordBytes = 4;

// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

}  // namespace dtrain::cpu::DT_ISA
