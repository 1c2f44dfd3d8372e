// Colour ops of tf.image, pixel by pixel.
#include "data/color.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dtrain::data {
namespace {

// Hue in turns, [0, 1), with the minimum and maximum channel.
struct Hue {
  float hue, low, high;
};

Hue hue_of(const float* rgb) {
  const float r = rgb[0], g = rgb[1], b = rgb[2];
  Hue out{0, std::min({r, g, b}), std::max({r, g, b})};
  const float range = out.high - out.low;
  if (range <= 0) return out;
  const float unit = 1 / (6 * range);
  out.hue = out.high == r ? unit * (g - b) : out.high == g ? unit * (b - r) + 2.0f / 6 : unit * (r - g) + 4.0f / 6;
  if (out.hue < 0) out.hue += 1;
  return out;
}

void store(const Hue& color, float* rgb) {
  const float range = color.high - color.low, sixth = color.hue * 6;
  const auto ramp = [](float x) { return std::clamp(x, 0.0f, 1.0f); };
  rgb[0] = ramp(std::abs(sixth - 3) - 1) * range + color.low;
  rgb[1] = ramp(2 - std::abs(sixth - 2)) * range + color.low;
  rgb[2] = ramp(2 - std::abs(sixth - 4)) * range + color.low;
}

}  // namespace

void add_brightness(float* rgb, int64_t count, float delta) {
  for (int64_t i = 0; i < 3 * count; ++i) rgb[i] += delta;
}

void scale_contrast(float* rgb, int64_t count, float factor) {
  std::array<double, 3> sums{};
  for (int64_t i = 0; i < count; ++i)
    for (size_t c = 0; c < 3; ++c) sums[c] += rgb[3 * i + static_cast<int64_t>(c)];
  for (size_t c = 0; c < 3; ++c) {
    const float mean = static_cast<float>(sums[c] / static_cast<double>(count));
    for (int64_t i = 0; i < count; ++i) {
      float& value = rgb[3 * i + static_cast<int64_t>(c)];
      value = (value - mean) * factor + mean;
    }
  }
}

void scale_saturation(float* rgb, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) {
    Hue color = hue_of(rgb + 3 * i);
    const float saturation = color.high > 0 ? (color.high - color.low) / color.high : 0;
    color.low = color.high * (1 - std::clamp(saturation * factor, 0.0f, 1.0f));
    store(color, rgb + 3 * i);
  }
}

void rotate_hue(float* rgb, int64_t count, float delta) {
  for (int64_t i = 0; i < count; ++i) {
    Hue color = hue_of(rgb + 3 * i);
    color.hue += delta;
    color.hue -= std::floor(color.hue);
    store(color, rgb + 3 * i);
  }
}

void turn_in_yiq(float* rgb, int64_t count, float angle, float saturation) {
  constexpr std::array<std::array<double, 3>, 3> to_yiq{
      {{0.299, 0.587, 0.114}, {0.596, -0.274, -0.322}, {0.211, -0.523, 0.312}}};
  constexpr std::array<std::array<double, 3>, 3> to_rgb{
      {{1, 0.95617069, 0.62143257}, {1, -0.2726886, -0.64681324}, {1, -1.103744, 1.70062309}}};
  const double u = saturation * std::cos(angle), w = saturation * std::sin(angle);
  const std::array<std::array<double, 3>, 3> turn{{{1, 0, 0}, {0, u, -w}, {0, w, u}}};
  std::array<float, 9> matrix{};
  for (size_t i = 0; i < 9; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 9; ++j) sum += to_rgb[i / 3][j / 3] * turn[j / 3][j % 3] * to_yiq[j % 3][i % 3];
    matrix[i] = static_cast<float>(sum);
  }
  for (float *pixel = rgb, *end = rgb + 3 * count; pixel != end; pixel += 3) {
    const float r = pixel[0], g = pixel[1], b = pixel[2];
    for (size_t c = 0; c < 3; ++c) pixel[c] = matrix[3 * c] * r + matrix[3 * c + 1] * g + matrix[3 * c + 2] * b;
  }
}

}  // namespace dtrain::data
