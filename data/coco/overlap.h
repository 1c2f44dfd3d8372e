// IoU of single boxes and masks.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrain/data/coco/rle.h"

namespace dtrain::data::coco {

// Mask preprocessed for repeated comparison.
struct Shape {
  // Half-open range of set pixels, in column-major order.
  struct Span {
    uint32_t begin, end;
  };

  Shape() = default;
  explicit Shape(const Rle& rle);

  std::vector<Span> spans{};
  BoundingBox box{};  // bounding box of the pixels
  uint64_t area = 0;
};

// Intersection over union as in COCO's API; for crowds, intersection over the detection's area.
double iou(const BoundingBox& detection, const BoundingBox& truth, bool crowd);
// The same for masks of equal size.
double iou(const Shape& detection, const Shape& truth, bool crowd);

}  // namespace dtrain::data::coco
