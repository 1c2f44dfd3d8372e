// Random crops for training of SSD (Liu et al. 2016, section 2.2), by the rules of tf_cnn_benchmarks.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "dtrain/core/rng.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// Corners x1, y1, x2, y2 as fractions of an image.
using BoxFractions = std::array<float, 4>;

// Crop, and the objects whose centres are inside.
struct ObjectCrop {
  BoxFractions part{0, 0, 1, 1};
  std::vector<size_t> objects{};  // ascending

  // In an image of this size; at least 1 pixel per side.
  Window window(int width, int height) const;
  // Clipped box of an object, as fractions of the crop.
  BoxFractions box_in_part(const BoxFractions& box) const;
};

// With probability 1/7 the whole image, else a crop whose IoU with every box exceeds a threshold drawn from 0, 0.1,
// 0.3, 0.5, 0.7 and 0.9, with sides of 0.3 to 1 of the image's that differ by less than a factor of two, and with the
// centre of at least one object: the last valid one of 50 attempts. If there is none, all is redrawn.
ObjectCrop sample_object_crop(std::span<const BoxFractions> boxes, RandomStream& random);

}  // namespace dtrain::data
