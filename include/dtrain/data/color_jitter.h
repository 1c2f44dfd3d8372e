// Colour jitter.
#pragma once

#include "dtrain/core/rng.h"
#include "dtrain/data/image_ops.h"

namespace dtrain::data {

// Ranges of uniformly drawn colour changes; 0 disables one.
struct ColorJitter {
  float brightness = 0;           // factor in 1 +- brightness; detection adds instead, see there
  float contrast = 0;             // factor in 1 +- contrast
  float saturation = 0, hue = 0;  // saturation: factor in 1 +- saturation; hue: shift of at most this many turns
  bool any() const { return brightness != 0 || contrast != 0 || saturation != 0 || hue != 0; }
};

// torchvision's ColorJitter: all enabled changes in random order, by the ops of ImageEditor. Factors are not negative.
void jitter_colors(const ColorJitter& jitter, ImageEditor& editor, Image& image, RandomStream& random);

}  // namespace dtrain::data
