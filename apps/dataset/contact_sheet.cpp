#include "apps/dataset/contact_sheet.h"

#include <algorithm>

#include "apps/mask_rcnn/canvas.h"
#include "apps/mask_rcnn/text.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {
namespace {

constexpr int64_t kMaxSheetPixels = 1 << 28;  // 800 MB; as much again for the tiles

}  // namespace

void check_sheet(int64_t images, int64_t side) {
  const int64_t pixels = images * side * side;
  DT_CHECK(pixels <= kMaxSheetPixels, images, " images of ", side, " x ", side, " pixels: a sheet of ", pixels,
           " pixels, expected at most ", kMaxSheetPixels, "; show fewer or smaller ones");
}

data::Image sheet_of(const std::vector<Tile>& tiles, int columns, int side) {
  constexpr mask_rcnn::Color kGround{24, 27, 33}, kTitle{236, 239, 244};
  constexpr double kScale = 1.5;
  constexpr int kGap = 8;
  const int head = mask_rcnn::text_height(kScale) + kGap, across = std::min(columns, static_cast<int>(tiles.size()));
  const int down = (static_cast<int>(tiles.size()) + across - 1) / across;
  mask_rcnn::Canvas canvas(kGap + across * (side + kGap), kGap + down * (side + head + kGap), kGround);
  for (int i = 0; const Tile& tile : tiles) {
    const int x = kGap + i % across * (side + kGap), y = kGap + i / across * (side + head + kGap);
    draw_text(canvas, x, y, mask_rcnn::shortened(tile.title, kScale, side), kScale, kTitle);
    canvas.paste(tile.picture.view(), x, y + head);
    ++i;
  }
  return canvas.image();
}

}  // namespace dtrain::dataset
