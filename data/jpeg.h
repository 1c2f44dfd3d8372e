// JPEG: decoding of whole images or windows, and encoding, by libjpeg-turbo and by a baseline decoder of our own.
#pragma once

#include "data/image.h"

namespace dtrain::data {

// See ImageDecoder. All of a JPEG that libjpeg-turbo reads: baseline, progressive and arithmetic coding, 8 bits, grey,
// RGB, YCbCr, CMYK and YCCK, any sampling.
class JpegDecoder {
 public:
  explicit JpegDecoder(const DecodeOptions& options = {});
  ~JpegDecoder();

  ImageInfo open(std::span<const std::byte> encoded);
  // In a sequential JPEG nothing beside or below the window is transformed, and nothing below it is read. So damage
  // there goes unseen, but for a file that ends too early; decode the whole image to verify it.
  ImageView decode(const Window& window);
  const std::string& warning() const;
  const std::string& damage() const;
  bool suits_hardware() const;
  // Whether libjpeg-turbo decoded the last image, and not our own decoder, which takes images that are baseline, have a
  // usual sampling and are sound as far as they are read. The pixels are the same.
  bool used_libjpeg() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class Sampling : uint8_t { s444, s422, s420, s440, s411 };

struct JpegEncodeOptions {
  int quality = 90;  // 1..100, as cjpeg
  Sampling sampling = Sampling::s420;
  bool progressive = false;
  bool grey = false;      // store luma only
  bool optimize = false;  // Huffman tables made for the image: a few per cent smaller, slower to write
  int orientation = 1;    // 1 to 8: in an EXIF block where it is not 1; pixels are written as they are
};

// A JFIF file of `image`.
std::vector<std::byte> encode_jpeg(const ImageView& image, const JpegEncodeOptions& options = {});

}  // namespace dtrain::data
