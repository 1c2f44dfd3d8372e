// Masks of detections as pixels of the image: what a network says of the cells of a box, enlarged.
#pragma once

#include <span>

#include "data/coco/rle.h"

namespace dtrain::data::coco {

// How cells become pixels. Both surround the mask with a border of zeros one cell wide and set the pixels whose
// bilinearly interpolated probability passes 1/2.
enum class Paste {
  continuous,   // the centre of each pixel is looked up; TensorPack's accurate way, and Detectron2's
  whole_pixels  // the box grows to whole pixels first; torchvision's, which Detectron had, too
};

struct PasteBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // in pixels of the image
};

// cells [side * side]: probabilities, row by row. Throws Error where there are others, or an image of no size.
Rle paste(std::span<const float> cells, int side, const PasteBox& box, int64_t height, int64_t width, Paste rule);

}  // namespace dtrain::data::coco
