// Masks by COCO's rules: run lengths column by column, their compressed text, and polygons turned into them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data::coco {

// A binary image of width * height pixels in column-major order: runs of zeros and ones in turn, zeros first (a first
// run may be empty). The runs add up to width * height.
struct Rle {
  int64_t height = 0, width = 0;
  std::vector<uint32_t> counts{};

  bool operator==(const Rle&) const = default;
};

// Sides and runs are bounded before anything is allocated by them; all below throw Error(Fault::data) beyond.
constexpr int64_t kMaxMaskSide = 65500, kMaxMaskPixels = 100'000'000;

// pixels [height * width], row by row, not 0 where set.
Rle encode(std::span<const uint8_t> pixels, int64_t height, int64_t width);
std::vector<uint8_t> decode(const Rle& rle);  // 0 and 1, row by row
// COCO's compressed text. parse() throws where it is none, or does not add up to the size.
std::string to_text(const Rle& rle);
Rle parse(std::string_view text, int64_t height, int64_t width);
// Pixels that are set.
uint64_t area(const Rle& rle);
// x, y, width and height of the smallest box around the pixels that are set; all 0 where none is.
struct Bounds {
  double x = 0, y = 0, width = 0, height = 0;
};
Bounds bounds(const Rle& rle);
// The pixels that any (or all) of them set; all of one size, at least one.
Rle merge(std::span<const Rle> masks, bool intersect = false);
// xy: x0, y0, x1, y1 ... of at least three corners, in pixels; as rleFrPoly of COCO's API, bit for bit.
Rle from_polygon(std::span<const double> xy, int64_t height, int64_t width);
// Intersection over union of each detection with each truth, [detections * truths], by the rules of COCO's API: with a
// crowd the union is the area of the detection.
std::vector<double> iou(std::span<const Rle> detections, std::span<const Rle> truths, std::span<const uint8_t> crowd);

}  // namespace dtrain::data::coco
