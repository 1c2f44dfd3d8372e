// Pictures of detection data: images with their boxes, masks and class names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/dataset/annotated_source.h"
#include "apps/dataset/contact_sheet.h"

namespace dtrain::dataset {

struct TileSelection {
  std::string split{};  // empty: the first one that exists
  int64_t images = 12, side = 320, seed = 0;
};

// Tiles of randomly selected images, and what they are of. Images that cannot be used are named on stderr.
struct Tiles {
  std::vector<Tile> tiles{};
  uint64_t images = 0, bad_images = 0;  // in the split; of the selected ones
  std::string split{};
};

// Throws Error(Fault::data) if none can be shown, and Error for an unknown split.
Tiles object_tiles(const std::vector<AnnotatedSource>& splits, const TileSelection& selection);

}  // namespace dtrain::dataset
