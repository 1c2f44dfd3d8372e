// HSV colours for synthetic images.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace dtrain::data {

// Red, green and blue in [0, 255].
using Levels = std::array<float, 3>;

// HSV to RGB: non-negative hue in turns; saturation and value in [0, 1].
inline Levels levels_of_hue(float hue, float saturation, float value) {
  Levels levels;
  for (size_t i = 0; i < 3; ++i) {
    const float phase = std::fmod(hue * 6 + static_cast<float>(std::array{5, 3, 1}[i]), 6.0f);
    levels[i] = 255 * value * (1 - saturation * std::clamp(std::min(phase, 4 - phase), 0.0f, 1.0f));
  }
  return levels;
}

}  // namespace dtrain::data
