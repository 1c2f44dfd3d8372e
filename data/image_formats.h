// BMP, GIF, WebP and TIFF: formats that are decoded whole, because their libraries decode no windows.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/image.h"

namespace dtrain::data {

struct DecodedImage {
  Image image{};          // as stored: not turned
  std::string warning{};  // see ImageDecoder
  std::string damage{};
};

// Each read_*_info() reads a header, and each decode_*() the pixels, which are those of PIL's convert("RGB") unless an
// ImageDecoder's are not. Nothing is allocated by a header that exceeds `limits`. All throw Error(Fault::data), those
// that decode where not one row of pixels is left; what is left of a damaged image is decoded, the rest is blank.

// 1, 4, 8, 16, 24 and 32 bits, RLE and masks of bits; not the JPEG or PNG that a BMP may hold.
ImageInfo read_bmp_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_bmp(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

// The first frame on its canvas. Beside it, canvas and lost rows have the transparent colour, else colour 0.
ImageInfo read_gif_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_gif(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

// The first frame on its canvas, which is black beside it. A truncated file is refused.
ImageInfo read_webp_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_webp(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

// The first page: grey, RGB, palette, CMYK and YCbCr of up to 16 bits, in strips or tiles.
ImageInfo read_tiff_info(std::span<const std::byte> encoded, const ImageLimits& limits);
void decode_tiff(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded);

}  // namespace dtrain::data
