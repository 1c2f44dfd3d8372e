// Random crops of images with objects, as SSD is trained on (Liu et al. 2016, section 2.2), by tf_cnn_benchmarks'
// rules.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "data/image.h"
#include "libdtrain/core/rng.h"

namespace dtrain::data {

// Corners x1, y1, x2, y2 as fractions of an image.
using BoxFractions = std::array<float, 4>;

// A part of an image, and the objects whose centres are inside.
struct ObjectCrop {
  BoxFractions part{0, 0, 1, 1};
  std::vector<size_t> objects{};  // ascending

  // In an image of this size, at least one pixel a side.
  Window window(int width, int height) const;
  // What remains of an object's box, as fractions of the part.
  BoxFractions box_in_part(const BoxFractions& box) const;
};

// With probability 1 / 7 the whole image, else a part whose intersection over union with every box exceeds a bound
// drawn from 0, 0.1, 0.3, 0.5, 0.7 and 0.9, whose sides are 0.3 to 1 of the image's and differ by less than a factor of
// two, and which holds the centre of an object: the last one of 50 tries that is so. Where none is, all is drawn
// again.
ObjectCrop sample_object_crop(std::span<const BoxFractions> boxes, RandomStream& random);

}  // namespace dtrain::data
