// Where images and their boxes come to lie: sizes after resizing, and the canvases that hold them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/coco/rle.h"

namespace dtrain::data {

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// How a new side becomes a whole number of pixels.
enum class SizeRounding : uint8_t {
  half_up,      // as TensorPack
  down,         // as torchvision from 0.16 on, whose scale is in double precision
  down_single,  // as torchvision before, whose scale is a float: 424x640 becomes 799x1207 in place of 800x1207
};

// The shorter side of an image becomes as long as a drawn number, unless the longer one would exceed max_size then.
struct ResizeRule {
  int64_t min_short_edge = 800, max_short_edge = 800;
  int64_t max_size = 1333;
  SizeRounding rounding = SizeRounding::half_up;
  // To bytes after resizing, as OpenCV does with bytes, and TensorPack scales the polygons of masks. torchvision
  // resizes floats, by coordinates in single precision, and masks of pixels, see Placement.
  bool rounds_pixels = true;

  // Throws Error where there is no such size.
  void check() const;
};

// The size of `image` where its shorter side is to be `short_edge` long; at least a pixel a side.
ImageSize resized(const ImageSize& image, int64_t short_edge, const ResizeRule& rule);
// A landscape and a portrait canvas (one where they are equal) for all that the rule can make of such images; sides are
// multiples of `multiple`.
std::vector<ImageSize> automatic_canvases(const ResizeRule& rule, int64_t multiple);
// The number of the smallest canvas that holds all that the rule can make of `image`. Throws Error(Fault::data) where
// none does.
size_t canvas_of(const ImageSize& image, const ResizeRule& rule, const std::vector<ImageSize>& canvases);

// An image resized, and mirrored after that.
struct Placement {
  ImageSize from{}, to{};
  bool flip = false;
  // Masks are filled and mirrored at the size of the image and resized after that, by torch's interpolate(mode=
  // "nearest"): pixel i is pixel floor(i * from / to) of the source. Else polygons are scaled, mirrored and then
  // filled.
  bool resizes_masks = false;

  double scale_x() const { return static_cast<double>(to.width) / static_cast<double>(from.width); }
  double scale_y() const { return static_cast<double>(to.height) / static_cast<double>(from.height); }
  double x(double of_file) const {
    return flip ? static_cast<double>(to.width) - of_file * scale_x() : of_file * scale_x();
  }
  double y(double of_file) const { return of_file * scale_y(); }
  // x1, y1, x2, y2
  std::array<float, 4> corners(const coco::Box& box) const;
};

// The part of a box that lies in the image.
coco::Box clipped(const coco::Box& box, const ImageSize& image);

}  // namespace dtrain::data
