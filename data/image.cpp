// Tells image formats apart by content and hands them to their decoder.
#include "data/image.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "data/jpeg.h"
#include "data/orientation.h"
#include "data/png.h"
#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

std::string hex_byte(std::byte value) {
  constexpr char digits[] = "0123456789abcdef";
  const auto bits = std::to_integer<unsigned>(value);
  return {'0', 'x', digits[bits >> 4], digits[bits & 15]};
}

// Names what is not an image we read.
std::string describe(std::span<const std::byte> encoded) {
  if (encoded.empty()) return "it is empty";
  const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (text.starts_with("GIF8")) return "it is a GIF";
  if (text.starts_with("BM")) return "it is a BMP";
  if (text.starts_with("RIFF") && text.substr(std::min<size_t>(8, text.size())).starts_with("WEBP"))
    return "it is a WebP";
  if (text.starts_with(std::string_view("II*\0", 4)) || text.starts_with(std::string_view("MM\0*", 4)))
    return "it is a TIFF";
  if (text.size() >= 12 && text.substr(4, 4) == "ftyp")
    return concat("it is an ISO media file (HEIC, AVIF) of brand '", text.substr(8, 4), "'");
  return concat("it begins with ", hex_byte(encoded[0]), encoded.size() > 1 ? " and " + hex_byte(encoded[1]) : "");
}

}  // namespace

ImageFormat sniff_image(std::span<const std::byte> encoded) {
  constexpr unsigned char jpeg[] = {0xFF, 0xD8};
  constexpr unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (encoded.size() >= sizeof jpeg && std::memcmp(encoded.data(), jpeg, sizeof jpeg) == 0) return ImageFormat::jpeg;
  if (encoded.size() >= sizeof png && std::memcmp(encoded.data(), png, sizeof png) == 0) return ImageFormat::png;
  throw Error(Fault::data, concat("image of ", encoded.size(), " bytes is neither JPEG nor PNG: ", describe(encoded)));
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
  ImageInfo info;  // as stored
  Turn turn;
  Image upright;
  std::string warning, damage;
};

ImageDecoder::ImageDecoder(const DecodeOptions& options) : state_(std::make_unique<State>(options)) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

ImageInfo ImageDecoder::open(std::span<const std::byte> encoded) { return open(encoded, state_->options.orientation); }

ImageInfo ImageDecoder::open(std::span<const std::byte> encoded, Orientation orientation) {
  State& s = *state_;
  const bool jpeg = sniff_image(encoded) == ImageFormat::jpeg;
  s.info = jpeg ? s.jpeg.open(encoded) : s.png.open(encoded);
  if (jpeg) s.info.orientation = exif_orientation(encoded);
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
  if (s.info.format == ImageFormat::png) return s.png.decode(window);
  const ImageView view = s.jpeg.decode(stored_window(window, s.turn, s.info.width, s.info.height));
  s.warning = s.jpeg.warning();
  s.damage = s.jpeg.damage();
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
