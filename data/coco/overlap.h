// How much boxes and masks overlap, one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "data/coco/rle.h"

namespace dtrain::data::coco {

// A mask in the form in which it is compared with many others.
struct Shape {
  // A half-open range of pixels that are set, in column-major order.
  struct Span {
    uint32_t begin, end;
  };

  Shape() = default;
  explicit Shape(const Rle& rle);

  std::vector<Span> spans{};
  Box box{};  // around the pixels
  uint64_t area = 0;
};

// Intersection over union by the rules of COCO's API: with a crowd the union is the area of the detection.
double iou(const Box& detection, const Box& truth, bool crowd);
// The same for masks of one size.
double iou(const Shape& detection, const Shape& truth, bool crowd);

}  // namespace dtrain::data::coco
