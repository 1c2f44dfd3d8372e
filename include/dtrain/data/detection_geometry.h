// Geometry of detection images: sizes after resizing, canvases and transformed boxes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dtrain/data/coco/rle.h"

namespace dtrain::data {

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// Rounding of a resized side to whole pixels.
enum class SizeRounding : uint8_t {
  half_up,      // TensorPack
  down,         // torchvision from 0.16 on, with a double scale factor
  down_single,  // older torchvision, with a float scale factor: 424x640 becomes 799x1207 instead of 800x1207
};

// Scales the shorter side to a random length, unless the longer side would exceed max_size.
struct ResizeRule {
  int64_t min_short_edge = 800, max_short_edge = 800;
  int64_t max_size = 1333;
  SizeRounding rounding = SizeRounding::half_up;
  // Rounds pixels to bytes after resizing, as OpenCV does; TensorPack scales mask polygons. torchvision resizes floats
  // with single-precision coordinates, and rasterised masks; see Placement.
  bool rounds_pixels = true;

  // Throws Error for invalid sizes.
  void check() const;
};

// Size of `image` with the shorter side scaled to `short_edge`; at least 1 pixel per side.
ImageSize resized(const ImageSize& image, int64_t short_edge, const ResizeRule& rule);
// A landscape and a portrait canvas (one if they are equal) that hold every result of the rule; sides are multiples of
// `multiple`.
std::vector<ImageSize> automatic_canvases(const ResizeRule& rule, int64_t multiple);
// Index of the smallest canvas that holds every result of the rule for `image`. Throws Error(Fault::data) if there is
// none.
size_t canvas_of(const ImageSize& image, const ResizeRule& rule, const std::vector<ImageSize>& canvases);

// Resizing, followed by an optional horizontal flip.
struct Placement {
  ImageSize from{}, to{};
  bool flip = false;
  // Masks are rasterised and flipped at the original size, then resized by torch's interpolate(mode="nearest"): output
  // pixel i is source pixel floor(i * from / to). Else polygons are scaled and flipped, then rasterised.
  bool resizes_masks = false;

  double scale_x() const { return static_cast<double>(to.width) / static_cast<double>(from.width); }
  double scale_y() const { return static_cast<double>(to.height) / static_cast<double>(from.height); }
  double x(double of_file) const {
    return flip ? static_cast<double>(to.width) - of_file * scale_x() : of_file * scale_x();
  }
  double y(double of_file) const { return of_file * scale_y(); }
  // x1, y1, x2, y2
  std::array<float, 4> corners(const coco::BoundingBox& box) const;
};

// Intersection of a box with the image.
coco::BoundingBox clipped(const coco::BoundingBox& box, const ImageSize& image);

}  // namespace dtrain::data
