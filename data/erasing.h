// Random erasing (Zhong et al., 2017): which window of a sample is blanked.
#pragma once

#include <cstdint>

#include "data/image.h"
#include "libdtrain/core/rng.h"

namespace dtrain::data {

// torchvision's RandomErasing.
struct ErasingOptions {
  float probability = 0;
  float min_area = 0.02f, max_area = 0.33f;    // shares of the image's area
  float min_aspect = 0.3f, max_aspect = 3.3f;  // height over width, drawn evenly by its logarithm
};

// Throws Error where a range is empty or out of bounds.
void check(const ErasingOptions& options);

// The window that is erased: up to 10 tries for one that is smaller than the image in both directions. Empty where
// none is.
Window draw_erased(const ErasingOptions& options, int width, int height, RandomStream& random);

}  // namespace dtrain::data
