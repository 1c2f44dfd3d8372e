// Colours by hue, for images that are drawn.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace dtrain::data {

// Levels of red, green and blue, from 0 to 255.
using Levels = std::array<float, 3>;

// From HSV: the hue in turns, 0 or more; the saturation and the value in [0, 1].
inline Levels levels_of_hue(float hue, float saturation, float value) {
  Levels levels;
  for (size_t i = 0; i < 3; ++i) {
    const float phase = std::fmod(hue * 6 + static_cast<float>(std::array{5, 3, 1}[i]), 6.0f);
    levels[i] = 255 * value * (1 - saturation * std::clamp(std::min(phase, 4 - phase), 0.0f, 1.0f));
  }
  return levels;
}

}  // namespace dtrain::data
