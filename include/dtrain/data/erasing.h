// Random erasing (Zhong et al. 2017).
#pragma once

#include <cstdint>

#include "dtrain/core/rng.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// torchvision's RandomErasing.
struct ErasingOptions {
  float probability = 0;
  float min_area = 0.02f, max_area = 0.33f;    // fraction of the image's area
  float min_aspect = 0.3f, max_aspect = 3.3f;  // height / width, log-uniform
};

// Throws Error for a range that is empty or out of bounds.
void check(const ErasingOptions& options);

// Draws the window to erase: up to 10 attempts for one that is smaller than the image in both dimensions, else an empty
// window.
Window draw_erased(const ErasingOptions& options, int width, int height, RandomStream& random);

}  // namespace dtrain::data
