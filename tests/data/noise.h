// Noise image in which any wrong filter or window changes the result.
#pragma once

#include "dtrain/core/rng.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

inline Image noise(int width, int height, uint64_t seed) {
  Image image(width, height);
  RandomStream random(seed, 0);
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.below(256));
  return image;
}

}  // namespace dtrain::data
