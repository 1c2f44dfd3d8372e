#include "data/orientation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace dtrain::data {
namespace {

// Bounds-checked reader of a TIFF block in its byte order.
class TiffBlock {
 public:
  // Nothing unless it begins with a TIFF header.
  static std::optional<TiffBlock> open(std::span<const std::byte> bytes) {
    constexpr uint32_t kMagic = 42;
    if (bytes.size() < 8) return {};
    const bool little = bytes[0] == std::byte{'I'} && bytes[1] == std::byte{'I'};
    const bool big = bytes[0] == std::byte{'M'} && bytes[1] == std::byte{'M'};
    const TiffBlock block(bytes, little);
    if ((!little && !big) || block.number(2, 2) != kMagic) return {};
    return block;
  }

  std::optional<uint32_t> number(size_t at, size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return {};
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value = value << 8 | std::to_integer<uint32_t>(bytes_[little_ ? at + size - 1 - i : at + i]);
    return value;
  }

 private:
  TiffBlock(std::span<const std::byte> bytes, bool little) : bytes_(bytes), little_(little) {}
  std::span<const std::byte> bytes_;
  bool little_;
};

// 16-bit orientation tag of the first directory; 1 if absent.
int orientation_in(std::span<const std::byte> tiff) {
  constexpr uint32_t kTag = 0x0112, kShort = 3;
  constexpr size_t kEntry = 12;
  const std::optional<TiffBlock> block = TiffBlock::open(tiff);
  if (!block) return 1;
  const size_t directory = *block->number(4, 4);
  const std::optional<uint32_t> entries = block->number(directory, 2);
  if (!entries) return 1;
  for (size_t i = 0; i < *entries; ++i) {
    const size_t at = directory + 2 + i * kEntry;
    const std::optional<uint32_t> tag = block->number(at, 2);
    if (!tag) return 1;
    if (*tag != kTag) continue;
    const std::optional<uint32_t> value = block->number(at + 8, 2);
    const bool is_sound = block->number(at + 2, 2) == kShort && block->number(at + 4, 4) == 1u && value;
    return is_sound && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 1;
  }
  return 1;
}

constexpr std::string_view kExifName("Exif\0\0", 6);

bool is_named(std::span<const std::byte> block) {
  return block.size() >= kExifName.size() && std::memcmp(block.data(), kExifName.data(), kExifName.size()) == 0;
}

}  // namespace

int exif_block_orientation(std::span<const std::byte> block) {
  return orientation_in(is_named(block) ? block.subspan(kExifName.size()) : block);
}

int png_orientation(std::span<const std::byte> png) {
  constexpr size_t kSignature = 8, kAround = 12;  // length, type and checksum of a chunk
  for (std::span<const std::byte> left = png.subspan(std::min(kSignature, png.size())); left.size() >= kAround;) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<size_t>(left[i]);
    if (length > left.size() - kAround) return 1;
    if (std::memcmp(left.data() + 4, "eXIf", 4) == 0) return exif_block_orientation(left.subspan(8, length));
    left = left.subspan(kAround + length);
  }
  return 1;
}

int exif_orientation(std::span<const std::byte> jpeg) {
  constexpr unsigned kApp1 = 0xE1, kStartOfScan = 0xDA, kEnd = 0xD9;
  size_t at = 2;
  while (jpeg.size() >= 4 && at <= jpeg.size() - 4) {
    if (jpeg[at] != std::byte{0xFF}) return 1;
    const auto marker = std::to_integer<unsigned>(jpeg[at + 1]);
    if (marker == 0xFF) {  // a byte of padding
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEnd) return 1;
    const size_t length = std::to_integer<size_t>(jpeg[at + 2]) << 8 | std::to_integer<size_t>(jpeg[at + 3]);
    if (length < 2 || length > jpeg.size() - at - 2) return 1;
    const std::span<const std::byte> body = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && is_named(body)) return exif_block_orientation(body);
    at += 2 + length;
  }
  return 1;
}

Turn turn_of(int orientation) {
  constexpr Turn kTurns[] = {{},
                             {.flips_x = true},
                             {.flips_x = true, .flips_y = true},
                             {.flips_y = true},
                             {.transposes = true},
                             {.transposes = true, .flips_y = true},
                             {.transposes = true, .flips_x = true, .flips_y = true},
                             {.transposes = true, .flips_x = true}};
  return kTurns[std::clamp(orientation, 1, 8) - 1];
}

bool is_upright_size(const ImageInfo& stored, int64_t width, int64_t height) {
  const bool is_stored = stored.width == width && stored.height == height;
  return !is_stored && turn_of(stored.orientation).transposes && stored.width == height && stored.height == width;
}

Window stored_window(const Window& window, const Turn& turn, int width, int height) {
  Window stored = window;
  if (turn.transposes) stored = {window.y, window.x, window.height, window.width};
  if (turn.flips_x) stored.x = width - stored.x - stored.width;
  if (turn.flips_y) stored.y = height - stored.y - stored.height;
  return stored;
}

void write_upright(const ImageView& stored, const Turn& turn, Image& upright) {
  const int width = turn.transposes ? stored.height : stored.width,
            height = turn.transposes ? stored.width : stored.height;
  if (upright.width != width || upright.height != height) upright = Image(width, height);
  uint8_t* to = upright.pixels.data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, to += 3) {
      const int column = turn.transposes ? y : x, row = turn.transposes ? x : y;
      const uint8_t* from = stored.row(turn.flips_y ? stored.height - 1 - row : row) +
                            3 * (turn.flips_x ? stored.width - 1 - column : column);
      std::copy_n(from, 3, to);
    }
}

}  // namespace dtrain::data
