#include "data/annotations/instance_masks.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "dtrain/core/error.h"
#include "dtrain/data/png.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::data::annotations {
namespace {

constexpr uint8_t kOutline = 255;

uint32_t packed(uint8_t red, uint8_t green, uint8_t blue) {
  return (uint32_t{red} << 16) | (uint32_t{green} << 8) | blue;
}

// VOC's palette: the bits of the index, lowest first, are red, green and blue from the highest bit down.
uint32_t palette_color(uint32_t index) {
  std::array<uint32_t, 3> color{};
  for (uint32_t bit = 0; bit < 8; ++bit, index >>= 3)
    for (uint32_t channel = 0; channel < 3; ++channel) color[channel] |= ((index >> channel) & 1) << (7 - bit);
  return packed(static_cast<uint8_t>(color[0]), static_cast<uint8_t>(color[1]), static_cast<uint8_t>(color[2]));
}

std::vector<uint8_t> indices_of_colors(const ImageView& image, const std::string& where) {
  std::unordered_map<uint32_t, uint8_t> indices;
  for (uint32_t i = 0; i < 256; ++i) indices.emplace(palette_color(i), static_cast<uint8_t>(i));
  std::vector<uint8_t> values;
  values.reserve(static_cast<size_t>(image.width) * static_cast<size_t>(image.height));
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const uint8_t* pixel = image.row(y) + 3 * x;
      const auto found = indices.find(packed(pixel[0], pixel[1], pixel[2]));
      if (found == indices.end())
        throw Error(Fault::data, concat(where, ": the colour ", int{pixel[0]}, ", ", int{pixel[1]}, ", ", int{pixel[2]},
                                        " at ", x, ", ", y, " is not in VOC's palette"));
      values.push_back(found->second);
    }
  return values;
}

// Runs of each index, by one pass over the columns.
std::vector<coco::Rle> masks_of(const std::vector<uint8_t>& values, const ImageSize& size) {
  uint8_t most = 0;
  for (const uint8_t value : values)
    if (value != kOutline) most = std::max(most, value);
  std::vector<coco::Rle> masks(most, coco::Rle{size.height, size.width, {}});
  std::vector<uint32_t> ends(most);  // of the runs
  const auto height = static_cast<size_t>(size.height), width = static_cast<size_t>(size.width);
  const auto at = [&](size_t pixel) { return values[pixel % height * width + pixel / height]; };
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    const uint8_t value = at(begin);
    for (end = begin + 1; end < values.size() && at(end) == value;) ++end;
    if (value == 0 || value == kOutline) continue;
    uint32_t& last = ends[value - 1u];
    masks[value - 1u].counts.push_back(static_cast<uint32_t>(begin) - last);
    masks[value - 1u].counts.push_back(static_cast<uint32_t>(end - begin));
    last = static_cast<uint32_t>(end);
  }
  for (size_t i = 0; i < masks.size(); ++i)
    if (ends[i] < values.size()) masks[i].counts.push_back(static_cast<uint32_t>(values.size()) - ends[i]);
  return masks;
}

}  // namespace

std::vector<coco::Rle> parse_instance_masks(std::span<const std::byte> png, const std::string& where,
                                            const ImageSize& size) try {
  PngDecoder decoder;
  const ImageInfo info = decoder.open(png);
  if (info.width != size.width || info.height != size.height)
    throw Error(Fault::data, concat(where, ": is ", info.width, "x", info.height, " pixels large, its image is ",
                                    size.width, "x", size.height));
  std::vector<uint8_t> values = decoder.decode_values();
  if (values.empty()) values = indices_of_colors(decoder.decode({0, 0, info.width, info.height}), where);
  return masks_of(values, size);
} catch (const Error& error) {
  const std::string_view what = error.what();
  throw Error(error.fault(), what.starts_with(where) ? std::string(what) : concat(where, ": ", what));
}

std::vector<coco::Rle> read_instance_masks(const std::string& path, const ImageSize& size) {
  const std::string bytes = read_text(path, kMaxRecordBytes);
  return parse_instance_masks(std::as_bytes(std::span(bytes)), path, size);
}

}  // namespace dtrain::data::annotations
