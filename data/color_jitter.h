// How far colours are changed at random.
#pragma once

#include "data/image_ops.h"
#include "libdtrain/core/rng.h"

namespace dtrain::data {

// Random changes of colour, each drawn evenly. 0: none.
struct ColorJitter {
  float brightness = 0;           // multiplied by 1 - brightness to 1 + brightness; for detection see there
  float contrast = 0;             // likewise, and the saturation alike
  float saturation = 0, hue = 0;  // turned by up to this many turns
  bool any() const { return brightness != 0 || contrast != 0 || saturation != 0 || hue != 0; }
};

// As torchvision's ColorJitter: all that are not 0, in an order that is drawn, by the ops of ImageEditor. Factors are
// not negative.
void jitter_colors(const ColorJitter& jitter, ImageEditor& editor, Image& image, RandomStream& random);

}  // namespace dtrain::data
