// EXIF's orientation of an image, and how it is turned by that.
#pragma once

#include <cstddef>
#include <span>

#include "data/image.h"

namespace dtrain::data {

// What the image's EXIF block states, 1 to 8; 1, upright as stored, where there is none or it is damaged. Reads no more
// than the segments before the pixels.
int exif_orientation(std::span<const std::byte> jpeg);
// The same of a PNG, whose block is a chunk before or behind the pixels, and of the block of another file, with or
// without the name that it has in a JPEG.
int png_orientation(std::span<const std::byte> png);
int exif_block_orientation(std::span<const std::byte> block);

// From stored pixels to upright ones: columns become rows first, then the stored axes are read from their ends.
struct Turn {
  bool transposes = false, flips_x = false, flips_y = false;
  bool any() const { return transposes || flips_x || flips_y; }
};
// Of an orientation from 1 to 8.
Turn turn_of(int orientation);

// Whether `width` x `height` is the size of the upright image and not that of the stored one: its orientation swaps the
// sides. `stored` is the header of a file that was opened without being turned.
bool is_upright_size(const ImageInfo& stored, int64_t width, int64_t height);

// The window of the stored image, `width` x `height`, that holds what `window` shows of the upright one.
Window stored_window(const Window& window, const Turn& turn, int width, int height);
// The upright pixels of a part of the stored image. `upright` is made anew where it has another size.
void write_upright(const ImageView& stored, const Turn& turn, Image& upright);

}  // namespace dtrain::data
