// Encoded images: what kind they are, the limits they must keep, and one decoder for all kinds we read.
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

// What a header says.
struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  int width = 0, height = 0;
  int components = 0;        // as stored: 1 grey or palette, 3 RGB or YCbCr, 4 CMYK, YCCK or RGBA
  bool progressive = false;  // progressive JPEG, interlaced PNG or GIF
  int orientation = 1;       // EXIF's or, of a TIFF, its own: 1 to 8; 1: upright as stored
};

// A rectangle of whole pixels, inside an image.
struct Window {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Window&) const = default;
};

// Sides and pixels are checked against the header, before anything is allocated by it. JPEG allows 65500 px a side
// (some real panoramas are that long); it is the pixel count that bounds memory. Time is bounded by counts of work
// alone and not by a clock, so that the same images are refused on every machine.
struct ImageLimits {
  int64_t max_side = 65500;
  int64_t max_pixels = 100'000'000;
  // A JPEG of several scans costs a pass over the image for each, although a scan may be a few bytes long. Usual
  // progressive ones have 10 scans, and 18 for CMYK.
  int max_scans = 256;
  int64_t max_scan_pixels = 2'000'000'000;  // scans times pixels
};

// Whether images are turned as their orientation says.
enum class Orientation : uint8_t { ignore, apply };

// How a JPEG is decoded; other formats have no choice.
struct DecodeOptions {
  bool fast_dct = false;         // the less exact integer IDCT (TensorFlow's INTEGER_FAST)
  bool fancy_upsampling = true;  // triangle filter for chroma, else replication
  ImageLimits limits = {};
  Orientation orientation = Orientation::ignore;
};

// RGB bytes of `height` rows, `stride` bytes apart, owned by someone else. kRowPadding bytes after the end of any row
// may be read (not used), so that vector loads need no special case at the right edge.
struct ImageView {
  static constexpr int kRowPadding = 16;
  const uint8_t* pixels = nullptr;
  int width = 0, height = 0;
  int64_t stride = 0;
  const uint8_t* row(int y) const { return pixels + y * stride; }
};

// RGB bytes, row after row, and kRowPadding bytes after the last.
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

// The format by content, never by name. Throws Error(Fault::data) naming what the bytes are where it is none of them.
ImageFormat sniff_image(std::span<const std::byte> encoded);
// Whether a file's name ends as those of images do: for folders that hold other files as well.
bool has_image_name(const std::string& path);

// Throws Error(Fault::data) where `info` exceeds `limits` or has no pixels.
void check_limits(const ImageInfo& info, const ImageLimits& limits);

// Decodes to RGB as PIL's convert("RGB") does: alpha is dropped, 16 bits lose the lower 8 (also of grey, which PIL
// saturates), CMYK of JPEGs is taken as inverted (Adobe's convention, which all known writers follow). YCCK goes
// through a more exact transform than PIL's, unless the fast one is asked for: a few samples are 3 levels apart. Of
// animations and files of several pages the first image is decoded. Keeps buffers from image to image: one per worker
// thread.
class ImageDecoder {
 public:
  explicit ImageDecoder(const DecodeOptions& options = {});
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header. `encoded` must stay alive until decode() has returned. Where the image is turned, width and
  // height are those of the upright image, and so are windows and pixels. Throws Error(Fault::data).
  ImageInfo open(std::span<const std::byte> encoded);
  // The same with another rule for its orientation than the options'.
  ImageInfo open(std::span<const std::byte> encoded, Orientation orientation);
  // Whether the opened image is one for decoders in hardware: a baseline JPEG, grey or YCbCr in one scan, of 4:4:4,
  // 4:2:2, 4:4:0 or 4:2:0, whose markers are as they should be to the end.
  bool suits_hardware() const;
  // Decodes a window of the opened image, or all of it; once per open(). The pixels equal those of a full decode and
  // live until the next call. Throws Error(Fault::data).
  ImageView decode(const Window& window);
  ImageView decode();
  // The first warning about the decoded image: not empty where anything was odd but decodable.
  const std::string& warning() const;
  // The first warning that says that pixels were lost: a truncated file, corrupt data. Empty where the image is whole.
  const std::string& damage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
