// JPEG decoding of images and windows by libjpeg-turbo or the built-in baseline decoder, and encoding.
#pragma once

#include "dtrain/data/image.h"

namespace dtrain::data {

// See ImageDecoder. Supports everything that libjpeg-turbo does: baseline, progressive and arithmetic coding, 8 bits,
// grey, RGB, YCbCr, CMYK and YCCK, any subsampling.
class JpegDecoder {
 public:
  explicit JpegDecoder(const DecodeOptions& options = {});
  ~JpegDecoder();

  ImageInfo open(std::span<const std::byte> encoded);
  // In sequential JPEGs, blocks outside of the window are not transformed, and blocks below it not even read. Damage
  // there goes unnoticed except for truncation; decode the whole image to verify it.
  ImageView decode(const Window& window);
  const std::string& warning() const;
  const std::string& damage() const;
  bool suits_hardware() const;
  // Whether libjpeg-turbo decoded the last image. The built-in decoder handles baseline images of usual subsampling
  // that are valid as far as they are read. Both give the same pixels.
  bool used_libjpeg() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class Sampling : uint8_t { s444, s422, s420, s440, s411 };

struct JpegEncodeOptions {
  int quality = 90;  // 1 to 100, as in cjpeg
  Sampling sampling = Sampling::s420;
  bool progressive = false;
  bool grey = false;      // store luma only
  bool optimize = false;  // optimised Huffman tables: a few per cent smaller, slower to write
  int orientation = 1;    // 1 to 8: stored as EXIF unless 1; pixels are not rotated
};

// Encodes `image` as JFIF.
std::vector<std::byte> encode_jpeg(const ImageView& image, const JpegEncodeOptions& options = {});

}  // namespace dtrain::data
