// Random crops for training.
#pragma once

#include <span>

#include "dtrain/core/rng.h"
#include "dtrain/data/image.h"
#include "dtrain/data/preprocess.h"

namespace dtrain::data {

// Limits of sample_distorted_box: fraction of the image's area, and aspect ratio (width / height).
struct CropLimits {
  float min_area = 0.05f, max_area = 1;
  float min_aspect = 0.75f, max_aspect = 1.33f;
};

// tf.image.sample_distorted_bounding_box: uniform aspect ratio, then height, with up to 100 attempts for a crop that
// covers 10 % of some box (of the image without boxes); else the whole image. As in TensorFlow, the last possible
// offset is never drawn. Throws Error(Fault::data) for a box outside [0, 1].
Window sample_distorted_box(int width, int height, std::span<const NormalizedBox> boxes, RandomStream& random,
                            const CropLimits& limits = {});

// torchvision's RandomResizedCrop: area U[0.08, 1), log-uniform aspect ratio in [3/4, 4/3], 10 attempts, else the
// central crop with the nearest allowed aspect ratio.
Window random_resized_crop(int width, int height, RandomStream& random);

}  // namespace dtrain::data
