// BMP, GIF, WebP and TIFF, whose libraries decode whole images only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "dtrain/data/image.h"

namespace dtrain::data {

struct DecodedImage {
  Image image{};          // as stored, without orientation
  std::string warning{};  // see ImageDecoder
  std::string damage{};
};

// read_*_info() parse a header, decode_*() the pixels. Pixels equal PIL's convert("RGB") except for the differences of
// ImageDecoder. No allocation depends on a header that exceeds `limits`. All throw Error(Fault::data); decoders only if
// no row is usable: damaged images are decoded as far as possible, the rest is blank.

// 1, 4, 8, 16, 24 and 32 bits, RLE and bit masks; no embedded JPEG or PNG.
ImageInfo read_bmp_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_bmp(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

// First frame on its canvas. Canvas and lost rows have the transparent colour, else colour 0.
ImageInfo read_gif_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_gif(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

// First frame on a black canvas. Rejects truncated files.
ImageInfo read_webp_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_webp(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

// First page: grey, RGB, palette, CMYK and YCbCr up to 16 bits, in strips or tiles.
ImageInfo read_tiff_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_tiff(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

}  // namespace dtrain::data
