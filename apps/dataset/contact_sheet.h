// A contact sheet: small pictures with titles, in rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/data/image.h"

namespace dtrain::dataset {

struct Tile {
  data::Image picture{};
  std::string title{};
};

// Throws Error if `images` pictures of `side` x `side` pixels are more than 2^28 pixels.
void check_sheet(int64_t images, int64_t side);

// Tiles of at most `side` x `side` pixels.
data::Image sheet_of(const std::vector<Tile>& tiles, int columns, int side);

}  // namespace dtrain::dataset
