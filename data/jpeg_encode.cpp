// JPEG encoder on libjpeg-turbo.
#include <array>
#include <cstdlib>

#include "data/jpeg_errors.h"
#include "dtrain/core/error.h"
#include "dtrain/data/jpeg.h"

namespace dtrain::data {
namespace {

// Owner of libjpeg's allocations while encoding.
struct Encoder {
  jpeg_compress_struct codec{};
  JpegErrors errors;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;

  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder() {
    jpeg_destroy_compress(&codec);
    std::free(bytes);
  }
};

std::array<int, 2> luma_factors(Sampling sampling) {
  switch (sampling) {
    case Sampling::s444:
      return {1, 1};
    case Sampling::s422:
      return {2, 1};
    case Sampling::s420:
      return {2, 2};
    case Sampling::s440:
      return {1, 2};
    case Sampling::s411:
      return {4, 1};
  }
  return {1, 1};
}

// Writes an EXIF block with the orientation tag only.
void write_orientation(jpeg_compress_struct& codec, int orientation) {
  constexpr size_t kValue = 24;
  JOCTET block[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0?\0\0\0\0\0\0";  // and the \0 of its end
  block[kValue] = static_cast<JOCTET>(orientation);
  jpeg_write_marker(&codec, JPEG_APP0 + 1, block, sizeof block);
}

// Call inside guarded().
void encode(Encoder& e, const ImageView& image, const JpegEncodeOptions& options) {
  jpeg_create_compress(&e.codec);
  jpeg_mem_dest(&e.codec, &e.bytes, &e.size);
  e.codec.image_width = static_cast<JDIMENSION>(image.width);
  e.codec.image_height = static_cast<JDIMENSION>(image.height);
  e.codec.input_components = 3;
  e.codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&e.codec);
  jpeg_set_quality(&e.codec, options.quality, TRUE);
  if (options.grey) {
    jpeg_set_colorspace(&e.codec, JCS_GRAYSCALE);
  } else {
    const auto [horizontal, vertical] = luma_factors(options.sampling);
    e.codec.comp_info[0].h_samp_factor = horizontal;
    e.codec.comp_info[0].v_samp_factor = vertical;
  }
  e.codec.optimize_coding = options.optimize ? TRUE : FALSE;
  if (options.progressive) jpeg_simple_progression(&e.codec);
  jpeg_start_compress(&e.codec, TRUE);
  if (options.orientation != 1) write_orientation(e.codec, options.orientation);
  for (int y = 0; y < image.height; ++y) {
    auto* row = const_cast<JSAMPROW>(image.row(y));  // libjpeg's type has no const; it does not write
    jpeg_write_scanlines(&e.codec, &row, 1);
  }
  jpeg_finish_compress(&e.codec);
}

}  // namespace

std::vector<std::byte> encode_jpeg(const ImageView& image, const JpegEncodeOptions& options) {
  DT_CHECK(image.width > 0 && image.height > 0 && image.width <= JPEG_MAX_DIMENSION &&
               image.height <= JPEG_MAX_DIMENSION && options.quality >= 1 && options.quality <= 100,
           "cannot encode a JPEG of ", image.width, "x", image.height, " pixels at quality ", options.quality, ": 1..",
           JPEG_MAX_DIMENSION, " a side and quality 1..100 are possible");
  Encoder e;
  e.codec.err = install(e.errors);
  if (!guarded(e.errors, [&] { encode(e, image, options); }))
    throw Error(Fault::resource,
                concat("JPEG of ", image.width, "x", image.height, " pixels cannot be encoded: ", e.errors.error));
  const auto* begin = reinterpret_cast<const std::byte*>(e.bytes);
  return {begin, begin + e.size};
}

}  // namespace dtrain::data
