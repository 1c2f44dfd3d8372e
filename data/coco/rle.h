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

// The upper left corner and the size of a box, in pixels.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;

  bool operator==(const Box&) const = default;
};

// Masks have from 1 to kMaxMaskSide rows and columns and at most kMaxMaskPixels pixels; coordinates of polygons are at
// most kMaxCoordinate in size, and outlines pass from one column to the next at most kMaxCrossings times. All functions
// throw Error(Fault::data) beyond these bounds, before they allocate anything that depends on them.
constexpr int64_t kMaxMaskSide = 65500, kMaxMaskPixels = 100'000'000, kMaxCrossings = 10'000'000;
constexpr double kMaxCoordinate = 1e6;

// Throws Error(Fault::data) where a mask may not have this size.
void check_mask_size(int64_t height, int64_t width);
// These throw Error(Fault::data) where the size is out of bounds or the counts do not add up to it, and where two sizes
// differ.
void check(const Rle& rle);
void check_same_size(const Rle& a, const Rle& b);

// pixels [height * width], row by row, set where they are not 0.
Rle encode(std::span<const uint8_t> pixels, int64_t height, int64_t width);
// 0 and 1, row by row.
std::vector<uint8_t> decode(const Rle& rle);

// COCO's compressed text, of the characters '0' to 'o'. parse() throws Error(Fault::data) for text that is none, or
// whose runs do not add up to the size.
std::string to_text(const Rle& rle);
Rle parse(std::string_view text, int64_t height, int64_t width);

// Pixels that are set.
uint64_t area(const Rle& rle);
// The smallest box around the pixels that are set; all 0 where none is.
Box bounds(const Rle& rle);
// The pixels that any (or all, where `intersect`) of the masks set. There is at least one, and all have one size.
Rle merge(std::span<const Rle> masks, bool intersect = false);

// A polygon has x0, y0, x1, y1 ... of at least three corners, in pixels; it is closed and filled by the even-odd rule.
// The result is that of rleFrPoly of COCO's API, bit for bit.
Rle from_polygon(std::span<const double> xy, int64_t height, int64_t width);
// The union of several polygons, at least one, which together are the parts of one object.
Rle from_polygons(std::span<const std::vector<double>> polygons, int64_t height, int64_t width);

// Intersection over union of each detection with each truth, [detections * truths], by the rules of COCO's API: with a
// crowd the union is the area of the detection. `crowd` has a value for each truth. Masks are of one size.
std::vector<double> iou(std::span<const Rle> detections, std::span<const Rle> truths, std::span<const uint8_t> crowd);
std::vector<double> iou(std::span<const Box> detections, std::span<const Box> truths, std::span<const uint8_t> crowd);

}  // namespace dtrain::data::coco
