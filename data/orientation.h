// EXIF orientation of images, and its application.
#pragma once

#include <cstddef>
#include <span>

#include "dtrain/data/image.h"

namespace dtrain::data {

// EXIF orientation of a JPEG, 1 to 8; 1 (upright) if it is missing or damaged. Reads only the segments before the
// pixels.
int exif_orientation(std::span<const std::byte> jpeg);
// The same for a PNG, whose EXIF chunk may follow the pixels, and for a bare EXIF block with or without its JPEG
// identifier.
int png_orientation(std::span<const std::byte> png);
int exif_block_orientation(std::span<const std::byte> block);

// Transformation from stored to upright pixels: optional transposition, then optional flips of the stored axes.
struct Turn {
  bool transposes = false, flips_x = false, flips_y = false;
  bool any() const { return transposes || flips_x || flips_y; }
};
// `orientation`: 1 to 8.
Turn turn_of(int orientation);

// Whether `width` x `height` is the size of the upright rather than of the stored image, because the orientation swaps
// the sides. `stored` is a header read without applying the orientation.
bool is_upright_size(const ImageInfo& stored, int64_t width, int64_t height);

// Window of the stored image, `width` x `height`, that corresponds to `window` of the upright image.
Window stored_window(const Window& window, const Turn& turn, int width, int height);
// Upright pixels of a part of the stored image. Reallocates `upright` if the size differs.
void write_upright(const ImageView& stored, const Turn& turn, Image& upright);

}  // namespace dtrain::data
