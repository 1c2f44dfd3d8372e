// Detection of image formats and dispatch to their decoders.
#include "dtrain/data/image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "data/image_formats.h"
#include "data/orientation.h"
#include "dtrain/core/error.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "libdtrain/core/lower_case.h"

namespace dtrain::data {
namespace {

std::string hex_byte(std::byte value) {
  constexpr char digits[] = "0123456789abcdef";
  const auto bits = std::to_integer<unsigned>(value);
  return {'0', 'x', digits[bits >> 4], digits[bits & 15]};
}

std::string_view text_of(std::span<const std::byte> encoded) {
  return {reinterpret_cast<const char*>(encoded.data()), encoded.size()};
}

// Description of content that is not a supported image.
std::string describe(std::span<const std::byte> encoded) {
  if (encoded.empty()) return "it is empty";
  const std::string_view text = text_of(encoded);
  if (text.size() >= 12 && text.substr(4, 4) == "ftyp")
    return concat("it is an ISO media file (HEIC, AVIF) of brand '", text.substr(8, 4), "'");
  return concat("it begins with ", hex_byte(encoded[0]), encoded.size() > 1 ? " and " + hex_byte(encoded[1]) : "");
}

// Decoder of a format without window decoding.
struct WholeFormat {
  ImageInfo (*read_info)(std::span<const std::byte>, const ImageLimits&);
  void (*decode)(std::span<const std::byte>, const ImageLimits&, DecodedImage&);
};

WholeFormat whole_format(ImageFormat format) {
  switch (format) {
    case ImageFormat::bmp:
      return {read_bmp_info, decode_bmp};
    case ImageFormat::gif:
      return {read_gif_info, decode_gif};
    case ImageFormat::webp:
      return {read_webp_info, decode_webp};
    default:
      return {read_tiff_info, decode_tiff};
  }
}

// Window of an image; throws Error if it exceeds the image.
ImageView view_of(const Image& image, const Window& window) {
  DT_CHECK(window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
               window.x <= image.width - window.width && window.y <= image.height - window.height,
           "image decode: window ", window.width, "x", window.height, " at (", window.x, ", ", window.y,
           ") is not inside the image of ", image.width, "x", image.height);
  const ImageView all = image.view();
  return {all.row(window.y) + int64_t{3} * window.x, window.width, window.height, all.stride};
}

}  // namespace

const char* name_of(ImageFormat format) {
  constexpr const char* kNames[] = {"JPEG", "PNG", "BMP", "GIF", "WebP", "TIFF"};
  return kNames[static_cast<size_t>(format)];
}

std::string media_type_of(ImageFormat format) { return lower_case(concat("image/", name_of(format))); }

ImageFormat sniff_image(std::span<const std::byte> encoded) {
  using namespace std::string_view_literals;
  const std::string_view text = text_of(encoded);
  if (text.starts_with("\xFF\xD8"sv)) return ImageFormat::jpeg;
  if (text.starts_with("\x89PNG\r\n\x1A\n"sv)) return ImageFormat::png;
  if (text.starts_with("GIF87a"sv) || text.starts_with("GIF89a"sv)) return ImageFormat::gif;
  if (text.starts_with("RIFF"sv) && text.size() >= 12 && text.substr(8, 4) == "WEBP"sv) return ImageFormat::webp;
  for (const std::string_view start : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv})  // the latter two are BigTIFF's
    if (text.starts_with(start)) return ImageFormat::tiff;
  if (text.starts_with("BM"sv)) return ImageFormat::bmp;
  throw Error(Fault::data, concat("image of ", encoded.size(),
                                  " bytes is no JPEG, PNG, BMP, GIF, WebP or TIFF: ", describe(encoded)));
}

bool has_image_name(const std::string& path) {
  constexpr std::array kEndings = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"};
  const std::string ending = lower_case(std::filesystem::path(path).extension().string());
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

void check_limits(const ImageInfo& info, const ImageLimits& limits) {
  const int64_t pixels = int64_t{info.width} * info.height;
  if (info.width <= 0 || info.height <= 0)
    throw Error(Fault::data, concat("image header claims ", info.width, "x", info.height, " pixels"));
  if (std::max(info.width, info.height) > limits.max_side || pixels > limits.max_pixels)
    throw Error(Fault::data, concat("image header claims ", info.width, "x", info.height, " pixels: more than ",
                                    limits.max_side, " a side or ", limits.max_pixels, " in all"));
}

struct ImageDecoder::State {
  explicit State(const DecodeOptions& given) : options(given), jpeg(given), png(given.limits) {}
  const DecodeOptions options;
  JpegDecoder jpeg;
  PngDecoder png;
  std::span<const std::byte> encoded;  // of a format without windows, until decoded
  DecodedImage whole;
  ImageInfo info;  // as stored
  Turn turn;
  Image upright;
  std::string warning, damage;

  ImageView decode_stored(const Window& window) {
    if (info.format == ImageFormat::png) return png.decode(window);
    if (info.format == ImageFormat::jpeg) {
      const ImageView view = jpeg.decode(window);
      warning = jpeg.warning();
      damage = jpeg.damage();
      return view;
    }
    DT_CHECK(!encoded.empty(), name_of(info.format), " decode: no image is open, or it was decoded before");
    whole_format(info.format).decode(std::exchange(encoded, {}), options.limits, whole);
    damage = whole.damage;
    warning = whole.warning.empty() ? damage : whole.warning;
    return view_of(whole.image, window);
  }
};

ImageDecoder::ImageDecoder(const DecodeOptions& options) : state_(std::make_unique<State>(options)) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

ImageInfo ImageDecoder::open(std::span<const std::byte> encoded) { return open(encoded, state_->options.orientation); }

ImageInfo ImageDecoder::open(std::span<const std::byte> encoded, Orientation orientation) {
  State& s = *state_;
  s.encoded = {};
  const ImageFormat format = sniff_image(encoded);
  if (format == ImageFormat::jpeg) {
    s.info = s.jpeg.open(encoded);
    s.info.orientation = exif_orientation(encoded);
  } else if (format == ImageFormat::png) {
    s.info = s.png.open(encoded);
    s.info.orientation = png_orientation(encoded);
  } else {
    s.info = whole_format(format).read_info(encoded, s.options.limits);
    s.encoded = encoded;
  }
  s.turn = orientation == Orientation::apply ? turn_of(s.info.orientation) : Turn();
  ImageInfo seen = s.info;
  if (s.turn.transposes) std::swap(seen.width, seen.height);
  return seen;
}

bool ImageDecoder::suits_hardware() const {
  return state_->info.format == ImageFormat::jpeg && !state_->turn.any() && state_->jpeg.suits_hardware();
}

ImageView ImageDecoder::decode(const Window& window) {
  State& s = *state_;
  s.warning.clear();
  s.damage.clear();
  const ImageView view = s.decode_stored(stored_window(window, s.turn, s.info.width, s.info.height));
  if (!s.turn.any()) return view;
  write_upright(view, s.turn, s.upright);
  return s.upright.view();
}

ImageView ImageDecoder::decode() {
  const ImageInfo& stored = state_->info;
  if (state_->turn.transposes) return decode({0, 0, stored.height, stored.width});
  return decode({0, 0, stored.width, stored.height});
}

const std::string& ImageDecoder::warning() const { return state_->warning; }

const std::string& ImageDecoder::damage() const { return state_->damage; }

}  // namespace dtrain::data
