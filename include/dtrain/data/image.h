// Encoded images: format detection, limits, and a decoder for all supported formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dtrain::data {

enum class ImageFormat : uint8_t { jpeg, png, bmp, gif, webp, tiff };
// "JPEG", "PNG", "BMP", "GIF", "WebP" or "TIFF".
const char* name_of(ImageFormat format);
// "image/jpeg".
std::string media_type_of(ImageFormat format);

// Header of an image.
struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  int width = 0, height = 0;
  int components = 0;        // stored channels: 1 grey or palette, 3 RGB or YCbCr, 4 CMYK, YCCK or RGBA
  bool progressive = false;  // progressive JPEG, interlaced PNG or GIF
  int orientation = 1;       // 1 to 8, from EXIF or the TIFF header; 1: upright
};

// Rectangle inside an image, in pixels.
struct Window {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Window&) const = default;
};

// Limits are checked against the header before any allocation that depends on it. JPEG allows sides of 65500 px, which
// real panoramas reach; the pixel count bounds memory. Time is bounded by operation counts, not by a clock, so that
// every machine rejects the same images.
struct ImageLimits {
  int64_t max_side = 65500;
  int64_t max_pixels = 100'000'000;
  // Each scan of a JPEG costs a pass over the image, even if it has only a few bytes. Typical progressive JPEGs have 10
  // scans, 18 for CMYK.
  int max_scans = 256;
  int64_t max_scan_pixels = 2'000'000'000;  // scans times pixels
};

// Whether to apply the image's orientation.
enum class Orientation : uint8_t { ignore, apply };

// JPEG decoding options; other formats have none.
struct DecodeOptions {
  bool fast_dct = false;         // the less exact integer IDCT (TensorFlow's INTEGER_FAST)
  bool fancy_upsampling = true;  // triangle filter for chroma, else replication
  ImageLimits limits = {};
  Orientation orientation = Orientation::ignore;
};

// Non-owning view of RGB bytes: `height` rows, `stride` bytes apart. kRowPadding bytes after each row must be readable,
// so that vector loads need no special case at the right edge.
struct ImageView {
  static constexpr int kRowPadding = 16;
  const uint8_t* pixels = nullptr;
  int width = 0, height = 0;
  int64_t stride = 0;
  const uint8_t* row(int y) const { return pixels + y * stride; }
};

// Contiguous RGB bytes, followed by kRowPadding bytes.
struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;

  Image() = default;
  Image(int image_width, int image_height)
      : width(image_width),
        height(image_height),
        pixels(size_t{3} * static_cast<size_t>(image_width) * static_cast<size_t>(image_height) +
               ImageView::kRowPadding) {}
  ImageView view() const { return {pixels.data(), width, height, int64_t{3} * width}; }
};

// Detects the format from the content. Throws Error(Fault::data) naming the actual content for unsupported formats.
ImageFormat sniff_image(std::span<const std::byte> encoded);
// Whether the file name has an image's extension, for folders with mixed files.
bool has_image_name(const std::string& path);

// Throws Error(Fault::data) if `info` exceeds `limits` or has no pixels.
void check_limits(const ImageInfo& info, const ImageLimits& limits);

// Decodes to RGB as PIL's convert("RGB"): drops alpha and the lower 8 of 16 bits (also for grey, which PIL saturates);
// CMYK JPEGs are inverted (Adobe's convention, used by all known writers). YCCK uses a more exact transform than PIL
// unless fast_dct is set; a few samples differ by 3 levels. Decodes the first image of animations and multi-page files.
// Reuses buffers: one decoder per worker thread.
class ImageDecoder {
 public:
  explicit ImageDecoder(const DecodeOptions& options = {});
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header. `encoded` must outlive decode(). With applied orientation, sizes, windows and pixels refer to the
  // upright image. Throws Error(Fault::data).
  ImageInfo open(std::span<const std::byte> encoded);
  // The same with another orientation rule than the options'.
  ImageInfo open(std::span<const std::byte> encoded, Orientation orientation);
  // Whether hardware decoders support the opened image: a baseline JPEG, grey or YCbCr in one scan, 4:4:4, 4:2:2, 4:4:0
  // or 4:2:0, with valid markers to the end.
  bool suits_hardware() const;
  // Decodes a window of the opened image, or all of it; once per open(). Pixels equal a full decode and are valid until
  // the next call. Throws Error(Fault::data).
  ImageView decode(const Window& window);
  ImageView decode();
  // First warning about the decoded image; empty without any.
  const std::string& warning() const;
  // First warning about lost pixels (truncated file, corrupt data); empty for an intact image.
  const std::string& damage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
