// BMP decoder for Windows and OS/2 bitmaps.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "data/image_formats.h"
#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr uint32_t kRle8 = 1, kRle4 = 2, kBitfields = 3, kAlphaBitfields = 6;

template <class... Parts>
[[noreturn]] void refuse_bmp(const Parts&... what) {
  throw Error(Fault::data, concat("BMP cannot be decoded: ", what...));
}

// Little-endian number of up to 4 bytes.
uint32_t bmp_number(std::span<const std::byte> bytes, uint64_t at, size_t size) {
  if (at > bytes.size() || bytes.size() - at < size) refuse_bmp("its header is truncated");
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

// Bit mask of a channel in a pixel of 16 to 32 bits.
struct BmpChannel {
  uint32_t mask = 0, most = 0;
  int shift = 0;

  BmpChannel() = default;
  explicit BmpChannel(uint32_t bits) : mask(bits), shift(bits == 0 ? 0 : std::countr_zero(bits)) {
    most = mask >> shift;
    if ((most & (most + 1)) != 0) refuse_bmp("a mask of colours has bits apart from each other");
  }
  uint8_t of(uint32_t pixel) const {
    const uint32_t value = (pixel & mask) >> shift;
    return static_cast<uint8_t>(most == 255 || most == 0 ? value : uint64_t{value} * 255 / most);
  }
};

struct BmpHeader {
  int width = 0, height = 0, bits = 0;
  bool top_down = false;
  uint32_t compression = 0;
  uint64_t pixels_at = 0;
  std::array<BmpChannel, 3> channels{};
  std::array<std::array<uint8_t, 3>, 256> palette{};

  bool is_rle() const { return compression == kRle8 || compression == kRle4; }
  bool has_masks() const { return compression == kBitfields || compression == kAlphaBitfields; }
};

void check_kind(const BmpHeader& header) {
  const int bits = header.bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    refuse_bmp(bits, " bits per pixel; expected 1, 4, 8, 16, 24 or 32");
  const bool fits = header.compression == 0 || (header.compression == kRle8 && bits == 8) ||
                    (header.compression == kRle4 && bits == 4) || (header.has_masks() && bits > 8);
  if (!fits)
    refuse_bmp("compression ", header.compression, " with ", bits, " bits per pixel; expected none, RLE or masks");
}

// Palette, and the default pixel offset behind it.
void read_bmp_palette(std::span<const std::byte> encoded, uint64_t at, uint32_t colors, size_t entry,
                      BmpHeader& header) {
  const uint64_t most = uint64_t{1} << header.bits;
  uint64_t count = colors == 0 ? most : std::min<uint64_t>(colors, most);
  if (header.pixels_at > at)
    count = std::min(count, (header.pixels_at - at) / entry);
  else
    header.pixels_at = at + count * entry;
  for (size_t i = 0; i < count; ++i)
    for (size_t c = 0; c < 3; ++c)
      header.palette[i][c] = static_cast<uint8_t>(bmp_number(encoded, at + i * entry + 2 - c, 1));
}

void read_bmp_masks(std::span<const std::byte> encoded, BmpHeader& header) {
  std::array<uint32_t, 3> masks = {0xFF0000, 0xFF00, 0xFF};
  if (header.bits == 16) masks = {0x7C00, 0x3E0, 0x1F};
  if (header.has_masks()) {
    constexpr uint64_t kMasks = 54;  // after the header of 40 bytes, or the end of a longer one
    std::array<uint32_t, 3> stated{};
    for (size_t c = 0; c < 3; ++c) stated[c] = bmp_number(encoded, kMasks + 4 * c, 4);
    if (stated != std::array<uint32_t, 3>{}) masks = stated;
  }
  for (size_t c = 0; c < 3; ++c) header.channels[c] = BmpChannel(masks[c]);
}

BmpHeader read_bmp_header(std::span<const std::byte> encoded, const ImageLimits& limits) {
  constexpr uint64_t kStart = 14;  // of the image header
  BmpHeader header;
  const uint32_t size = bmp_number(encoded, kStart, 4);
  uint32_t colors = 0;
  if (size == 12) {
    header.width = static_cast<int>(bmp_number(encoded, 18, 2));
    header.height = static_cast<int>(bmp_number(encoded, 20, 2));
    header.bits = static_cast<int>(bmp_number(encoded, 24, 2));
  } else if (size >= 40) {
    header.width = static_cast<int>(bmp_number(encoded, 18, 4));
    const auto height = static_cast<int32_t>(bmp_number(encoded, 22, 4));
    header.top_down = height < 0;
    header.height = height == INT32_MIN ? 0 : std::abs(height);
    header.bits = static_cast<int>(bmp_number(encoded, 28, 2));
    header.compression = bmp_number(encoded, 30, 4);
    colors = bmp_number(encoded, 46, 4);
  } else {
    refuse_bmp("a header of ", size, " bytes; expected 12, or 40 and more");
  }
  check_limits({ImageFormat::bmp, header.width, header.height}, limits);
  check_kind(header);
  header.pixels_at = bmp_number(encoded, 10, 4);
  const uint64_t behind = kStart + size;
  if (header.bits <= 8) {
    read_bmp_palette(encoded, behind, colors, size == 12 ? 3 : 4, header);
  } else {
    read_bmp_masks(encoded, header);
    if (header.pixels_at == 0) header.pixels_at = behind;
  }
  return header;
}

void write_bmp_row(const BmpHeader& header, const std::byte* from, uint8_t* to) {
  const int bits = header.bits;
  for (int x = 0; x < header.width; ++x, to += 3) {
    if (bits <= 8) {
      const int bit = x * bits % 8;
      const auto byte = std::to_integer<unsigned>(from[int64_t{x} * bits / 8]);
      std::ranges::copy(header.palette[byte >> (8 - bits - bit) & ((1u << bits) - 1)], to);
      continue;
    }
    uint32_t pixel = 0;
    const int bytes = bits / 8;
    for (int i = bytes; i-- > 0;) pixel = pixel << 8 | std::to_integer<uint32_t>(from[int64_t{x} * bytes + i]);
    for (size_t c = 0; c < 3; ++c) to[c] = header.channels[c].of(pixel);
  }
}

// Number of complete rows.
int write_bmp_rows(const BmpHeader& header, std::span<const std::byte> encoded, Image& image) {
  const uint64_t row_bits = static_cast<uint64_t>(header.width) * static_cast<uint64_t>(header.bits),
                 row_bytes = (row_bits + 7) / 8, stride = (row_bits + 31) / 32 * 4;
  for (int row = 0; row < header.height; ++row) {
    const uint64_t at = header.pixels_at + static_cast<uint64_t>(row) * stride;
    if (at > encoded.size() || encoded.size() - at < row_bytes) return row;
    const int y = header.top_down ? row : header.height - 1 - row;
    write_bmp_row(header, encoded.data() + at, image.pixels.data() + int64_t{3} * y * header.width);
  }
  return header.height;
}

// Decodes RLE; unwritten pixels have colour 0. Work is bounded by bytes and pixels: a run is clipped at the end of its
// row, as in PIL.
class BmpRuns {
 public:
  BmpRuns(const BmpHeader& header, std::span<const std::byte> encoded, Image& image)
      : header_(header), bytes_(encoded), at_(header.pixels_at), image_(image) {}

  // Returns whether the image is complete.
  bool decode() {
    for (int64_t i = 0; i < int64_t{header_.width} * header_.height; ++i)
      std::ranges::copy(header_.palette[0], image_.pixels.data() + 3 * i);
    while (row_ < header_.height && has(2)) {
      const int count = next(), value = next();
      if (count > 0) {
        paint(count, [&](int i) { return header_.bits == 8 ? value : i % 2 == 0 ? value >> 4 : value & 15; });
      } else if (value == 0) {
        x_ = 0;
        ++row_;
      } else if (value == 1) {
        return true;
      } else if (value == 2) {
        if (!has(2)) return false;
        x_ += next();
        row_ += next();
      } else if (!copy(value)) {
        return false;
      }
    }
    return row_ >= header_.height || (row_ == header_.height - 1 && x_ >= header_.width);
  }

 private:
  bool has(uint64_t count) const { return at_ <= bytes_.size() && bytes_.size() - at_ >= count; }
  int next() { return std::to_integer<int>(bytes_[at_++]); }

  template <class Index>
  void paint(int count, Index index) {
    if (row_ >= header_.height) return;
    const int64_t y = header_.top_down ? row_ : header_.height - 1 - row_,
                  painted = std::clamp<int64_t>(header_.width - x_, 0, count);
    uint8_t* to = image_.pixels.data() + 3 * (y * header_.width + x_);
    for (int i = 0; i < painted; ++i, to += 3) std::ranges::copy(header_.palette[static_cast<size_t>(index(i))], to);
    x_ += painted;
  }

  // Literal pixels, padded to an even number of bytes.
  bool copy(int count) {
    const uint64_t size = header_.bits == 8 ? static_cast<uint64_t>(count) : static_cast<uint64_t>(count + 1) / 2;
    if (!has(size)) return false;
    const std::byte* from = bytes_.data() + at_;
    paint(count, [&](int i) {
      if (header_.bits == 8) return std::to_integer<int>(from[i]);
      return std::to_integer<int>(from[i / 2]) >> (i % 2 == 0 ? 4 : 0) & 15;
    });
    at_ += size + size % 2;
    return true;
  }

  const BmpHeader& header_;
  std::span<const std::byte> bytes_;
  uint64_t at_;
  Image& image_;
  int64_t x_ = 0, row_ = 0;
};

}  // namespace

ImageInfo read_bmp_info(std::span<const std::byte> encoded, const ImageLimits& limits) {
  const BmpHeader header = read_bmp_header(encoded, limits);
  return {ImageFormat::bmp, header.width, header.height, header.bits <= 8 ? 1 : 3};
}

void decode_bmp(std::span<const std::byte> encoded, const ImageLimits& limits, DecodedImage& decoded) {
  const BmpHeader header = read_bmp_header(encoded, limits);
  decoded = {.image = Image(header.width, header.height)};
  if (header.is_rle()) {
    if (!BmpRuns(header, encoded, decoded.image).decode()) decoded.damage = "BMP file ends within its runs";
    return;
  }
  const int rows = write_bmp_rows(header, encoded, decoded.image);
  if (rows == 0) refuse_bmp("it ends before its pixels");
  if (rows < header.height) decoded.damage = concat("BMP file ends after ", rows, " of ", header.height, " rows");
}

}  // namespace dtrain::data
