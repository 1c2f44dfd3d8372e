// PNG decoding and encoding with libpng.
#pragma once

#include "dtrain/data/image.h"

namespace dtrain::data {

// See ImageDecoder. All colour types, 1 to 16 bits, interlaced or not; gamma is not applied.
class PngDecoder {
 public:
  explicit PngDecoder(const ImageLimits& limits = {});
  ~PngDecoder();

  ImageInfo open(std::span<const std::byte> encoded);
  ImageView decode(const Window& window);
  // Stored values of the opened image, [height * width]: palette indices or grey levels of up to 8 bits, not scaled.
  // Empty for other colours and depths, which decode() may still read.
  std::vector<uint8_t> decode_values();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A PNG file of `image`, 8-bit RGB.
std::vector<std::byte> encode_png(const ImageView& image);
// Encodes `pixels` [height * width] as an 8-bit grey PNG, with fast settings for masks.
std::vector<std::byte> encode_grey_png(std::span<const uint8_t> pixels, int width, int height);

}  // namespace dtrain::data
