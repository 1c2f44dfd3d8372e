// Pasting of predicted masks from box cells into the image.
#pragma once

#include <span>

#include "dtrain/data/coco/rle.h"

namespace dtrain::data::coco {

// Sampling convention. Both pad the mask with one cell of zeros and threshold the bilinear interpolation at 1/2.
enum class Paste {
  continuous,   // sample at pixel centres: TensorPack's accurate mode, and detectron2
  whole_pixels  // expand the box to whole pixels first: torchvision and the original Detectron
};

struct PasteBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // in pixels of the image
};

// Pastes probabilities [side * side], row by row. Throws Error for another number of cells, or an empty image.
Rle paste(std::span<const float> cells, int side, const PasteBox& box, int64_t height, int64_t width, Paste rule);

}  // namespace dtrain::data::coco
