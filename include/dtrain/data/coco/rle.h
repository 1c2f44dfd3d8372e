// COCO masks: run-length encoding, its compressed text, and rasterisation of polygons.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data::coco {

// Binary mask of width * height pixels in column-major order: alternating runs of zeros and ones, zeros first (the
// first run may be empty). Runs add up to width * height.
struct Rle {
  int64_t height = 0, width = 0;
  std::vector<uint32_t> counts{};

  bool operator==(const Rle&) const = default;
};

// Upper left corner and size, in pixels.
struct BoundingBox {
  double x = 0, y = 0, width = 0, height = 0;

  bool operator==(const BoundingBox&) const = default;
};

// Limits: masks have 1 to kMaxMaskSide rows and columns and at most kMaxMaskPixels pixels; coordinates of polygons are
// within +-kMaxCoordinate; outlines cross at most kMaxCrossings columns. All functions throw Error(Fault::data) beyond
// these limits before any allocation that depends on them.
constexpr int64_t kMaxMaskSide = 65500, kMaxMaskPixels = 100'000'000, kMaxCrossings = 10'000'000;
constexpr double kMaxCoordinate = 1e6;

// Throws Error(Fault::data) for an invalid mask size.
void check_mask_size(int64_t height, int64_t width);
// Throw Error(Fault::data) for an invalid size or counts that do not add up to it, and for different sizes.
void check(const Rle& rle);
void check_same_size(const Rle& a, const Rle& b);

// pixels [height * width], row-major; non-zero pixels are set.
Rle encode(std::span<const uint8_t> pixels, int64_t height, int64_t width);
// 0 or 1 per pixel, row-major.
std::vector<uint8_t> decode(const Rle& rle);

// COCO's compressed text, of characters '0' to 'o'. parse() throws Error(Fault::data) for invalid text and for runs
// that do not add up to the size.
std::string to_text(const Rle& rle);
Rle parse(std::string_view text, int64_t height, int64_t width);

// Number of set pixels.
uint64_t area(const Rle& rle);
// Bounding box of the set pixels; all 0 for an empty mask.
BoundingBox bounds(const Rle& rle);
// Union, or intersection with `intersect`, of at least one mask; all have equal size.
Rle merge(std::span<const Rle> masks, bool intersect = false);

// Rasterises a closed polygon x0, y0, x1, y1 ... of at least three vertices, in pixels, by the even-odd rule. Bit for
// bit rleFrPoly of COCO's API.
Rle from_polygon(std::span<const double> xy, int64_t height, int64_t width);
// Union of at least one polygon, the parts of one object.
Rle from_polygons(std::span<const std::vector<double>> polygons, int64_t height, int64_t width);

// Intersection over union of each detection with each ground truth, [detections * truths], as in COCO's API; for
// crowds, intersection over the detection's area. `crowd`: one flag per ground truth. Masks have equal size.
std::vector<double> iou(std::span<const Rle> detections, std::span<const Rle> truths, std::span<const uint8_t> crowd);
std::vector<double> iou(std::span<const BoundingBox> detections, std::span<const BoundingBox> truths,
                        std::span<const uint8_t> crowd);

// Deprecated name, removed with the next minor version: docs/migration.md.
using Box [[deprecated("renamed: BoundingBox")]] = BoundingBox;

}  // namespace dtrain::data::coco
