#include "dtrain/data/color_jitter.h"

#include <algorithm>
#include <array>
#include <utility>

namespace dtrain::data {

void jitter_colors(const ColorJitter& jitter, ImageEditor& editor, Image& image, RandomStream& random) {
  const auto factor = [&](float amount) { return random.uniform(std::max(0.0f, 1 - amount), 1 + amount); };
  const float brightness = factor(jitter.brightness), contrast = factor(jitter.contrast);
  const float saturation = factor(jitter.saturation), turns = random.uniform(-jitter.hue, jitter.hue);
  std::array<int, 4> order{0, 1, 2, 3};
  for (uint32_t left = 4; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  for (const int change : order) {
    if (change == 0 && jitter.brightness != 0) editor.scale_brightness(image, brightness);
    if (change == 1 && jitter.contrast != 0) editor.scale_contrast(image, contrast);
    if (change == 2 && jitter.saturation != 0) editor.scale_saturation(image, saturation);
    if (change == 3 && jitter.hue != 0) editor.move_hue(image, static_cast<double>(turns));
  }
}

}  // namespace dtrain::data
