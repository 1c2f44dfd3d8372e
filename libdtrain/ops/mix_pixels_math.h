// Per-pixel arithmetic of mix_pixels, shared by the CPU and CUDA kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtrain/core/rng.h"
#include "dtrain/ops/mix_pixels.h"
#include "libdtrain/ops/pointwise_math.h"

namespace dtrain {

// A window of a row: [left, right) x [top, bottom).
DT_HD inline bool is_inside(const int32_t* window, int64_t x, int64_t y) {
  return window[0] <= x && x < window[2] && window[1] <= y && y < window[3];
}

// Standard normal noise for the channels of pixel `pixel` (Box-Muller).
DT_HD inline void noise_of(uint64_t key, int64_t pixel, float* rgb) {
  constexpr uint64_t kStream = 0x6572617365;
  constexpr float kTurn = 6.283185307f;
  const Philox::Block words = Philox::block(key, kStream, static_cast<uint64_t>(pixel));
  const float first = std::sqrt(-2.0f * std::log(1.0f - unit_float(words[0])));
  const float second = std::sqrt(-2.0f * std::log(1.0f - unit_float(words[2])));
  rgb[0] = first * std::cos(kTurn * unit_float(words[1]));
  rgb[1] = first * std::sin(kTurn * unit_float(words[1]));
  rgb[2] = second * std::cos(kTurn * unit_float(words[3]));
}

// Replacement of an erased pixel; `pixel`: its index within the image.
DT_HD inline void erase_pixel(const PixelNormalization& options, Erased value, const int32_t* window, int64_t pixel,
                              float* rgb) {
  if (value == Erased::noise) {
    const uint64_t key = uint64_t{static_cast<uint32_t>(window[4])} << 32 | static_cast<uint32_t>(window[5]);
    noise_of(key, pixel, rgb);
    return;
  }
  for (int c = 0; c < 3; ++c)
    rgb[c] = value == Erased::mean ? 0.0f : normalize_pixel(0.0f, options.mean[c], options.scale[c]);
}

DT_HD inline float mix_pixel(float own, float partner, float weight) { return weight * own + (1 - weight) * partner; }

}  // namespace dtrain
