#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "data/hue.h"
#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"

namespace dtrain::data {
namespace {

constexpr std::array<const char*, kDrawnKinds> kNames = {
    "disc",   "square", "triangle", "cross", "ring", "horizontal stripes", "vertical stripes", "diagonal stripes",
    "checks", "dots"};

// Approximate signed distance to the figure's edge, positive inside; (u, v) are local coordinates, the figure lies in
// [-1, 1].
float figure(int kind, float u, float v, float frequency) {
  const float radius = std::hypot(u, v), au = std::abs(u), av = std::abs(v);
  switch (kind) {
    case 0:
      return 0.9f - radius;
    case 1:
      return 0.8f - std::max(au, av);
    case 2:
      return std::min(0.7f - v, 0.45f * (v + 0.9f) - 0.9f * au);
    case 3:
      return std::max(std::min(0.25f - au, 0.9f - av), std::min(0.25f - av, 0.9f - au));
    case 4:
      return 0.2f - std::abs(radius - 0.7f);
    case 5:
      return std::sin(frequency * v);
    case 6:
      return std::sin(frequency * u);
    case 7:
      return std::sin(0.7071f * frequency * (u + v));
    case 8:
      return std::sin(frequency * u) * std::sin(frequency * v) * 2;
    default:
      return std::cos(frequency * u) + std::cos(frequency * v) - 0.9f;
  }
}

}  // namespace

std::string drawn_class_name(int drawn_class, int classes) {
  const std::string name = kNames[static_cast<size_t>(drawn_class % kDrawnKinds)];
  return classes <= kDrawnKinds ? name : concat("colour ", drawn_class / kDrawnKinds, " ", name);
}

Image draw_image(int drawn_class, int classes, int size, uint64_t seed, uint64_t index) {
  DT_CHECK(classes >= 2 && classes <= kMaxDrawnClasses, "synthetic images of ", classes, " classes, expected 2 to ",
           kMaxDrawnClasses);
  DT_CHECK(drawn_class >= 0 && drawn_class < classes, "class ", drawn_class, " of ", classes);
  DT_CHECK(size >= 8 && size <= 4096, "synthetic images of ", size, " pixels, expected 8 to 4096");
  RandomStream random(seed, index);
  const int kind = drawn_class % kDrawnKinds, colours = (classes + kDrawnKinds - 1) / kDrawnKinds;
  const bool texture = kind >= 5;
  // With several colours the hue encodes the class, within the middle half of its range.
  const float share = random.uniform(0.25f, 0.75f);
  const float hue = colours == 1
                        ? random.uniform()
                        : (static_cast<float>(drawn_class / kDrawnKinds) + share) / static_cast<float>(colours);
  const bool dark_ground = random.uniform() < 0.5f;
  // Separate statements, because the evaluation order of function arguments is unspecified.
  const float ink_value = dark_ground ? random.uniform(0.7f, 1) : random.uniform(0.35f, 0.6f);
  const float ink_saturation = random.uniform(0.5f, 1);
  const float ground_value = dark_ground ? random.uniform(0.05f, 0.3f) : random.uniform(0.8f, 1);
  const float ground_saturation = random.uniform(0, 0.4f);
  const Levels ink = levels_of_hue(hue, ink_saturation, ink_value);
  const Levels ground = levels_of_hue(random.uniform(), ground_saturation, ground_value);
  const float radius = texture ? 1 : random.uniform(0.35f, 0.75f);
  const float reach = 0.9f - radius;
  const float x0 = texture ? random.uniform(-1, 1) : random.uniform(-1, 1) * reach;
  const float y0 = texture ? random.uniform(-1, 1) : random.uniform(-1, 1) * reach;
  const float angle = random.uniform(-0.2f, 0.2f), frequency = std::numbers::pi_v<float> * random.uniform(3, 6);
  const float noise = random.uniform(4, 24), slope_x = random.uniform(-20, 20), slope_y = random.uniform(-20, 20);
  const float edge = static_cast<float>(size) * radius / 2;  // pixels per unit of the figure

  Image image(size, size);
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const float px = (2 * static_cast<float>(x) + 1) / static_cast<float>(size) - 1;
      const float py = (2 * static_cast<float>(y) + 1) / static_cast<float>(size) - 1;
      const float dx = (px - x0) / radius, dy = (py - y0) / radius;
      const float u = std::cos(angle) * dx + std::sin(angle) * dy, v = std::cos(angle) * dy - std::sin(angle) * dx;
      const float cover = std::clamp(figure(kind, u, v, frequency) * edge + 0.5f, 0.0f, 1.0f);
      for (size_t c = 0; c < 3; ++c) {
        const float value = ground[c] + cover * (ink[c] - ground[c]) + slope_x * px + slope_y * py +
                            noise * (random.uniform() + random.uniform() - 1);
        image.pixels[3 * (static_cast<size_t>(y) * static_cast<size_t>(size) + static_cast<size_t>(x)) + c] =
            static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
      }
    }
  return image;
}

}  // namespace dtrain::data
