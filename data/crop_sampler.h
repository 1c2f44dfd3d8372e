// Random crops: which window of an image a training sample shows.
#pragma once

#include <span>

#include "data/image.h"
#include "data/preprocess.h"
#include "libdtrain/core/rng.h"

namespace dtrain::data {

// What a crop of sample_distorted_box may be: shares of the image's area, and width over height.
struct CropLimits {
  float min_area = 0.05f, max_area = 1;
  float min_aspect = 0.75f, max_aspect = 1.33f;
};

// TensorFlow's sample_distorted_bounding_box: an aspect drawn evenly, then a height, up to 100 tries for a crop that
// covers a tenth of some box (of the image, where there are none); else the whole image. As there, the last possible
// offset is never drawn. Throws Error(Fault::data) on a box outside [0, 1].
Window sample_distorted_box(int width, int height, std::span<const Box> boxes, RandomStream& random,
                            const CropLimits& limits = {});

// torchvision's RandomResizedCrop: area U[0.08, 1), log-uniform aspect 3/4 to 4/3, 10 tries, else the central crop of
// the nearest allowed aspect.
Window random_resized_crop(int width, int height, RandomStream& random);

}  // namespace dtrain::data
