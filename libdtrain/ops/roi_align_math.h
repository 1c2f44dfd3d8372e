// Sampling positions of RoIAlign along one axis, shared by the CPU and CUDA kernels and crop_masks.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

// One axis of a region: `cells` with `grid` samples each, over a map of `pixels`.
struct RoiAxis {
  float start, cell;  // start of the region and size of a cell, in pixels of the map
  int grid, pixels;

  // Limit of samples per cell, for degenerate (huge) regions.
  static constexpr float kMostSamples = 4096;

  // Region from `low` to `high` in image pixels on a map of `scale` pixels per image pixel.
  DT_HD static RoiAxis of(float low, float high, float scale, int cells, int sampling_ratio, bool aligned, int pixels) {
    const float offset = aligned ? 0.5f : 0.0f;
    const float start = low * scale - offset, end = high * scale - offset;
    float extent = end - start;
    if (!aligned && !(extent > 1.0f)) extent = 1.0f;
    const float cell = extent / static_cast<float>(cells);
    if (sampling_ratio > 0) return {start, cell, sampling_ratio, pixels};
    const float samples = ceilf(cell);  // none for inverted or NaN regions
    const float limited = samples > kMostSamples ? kMostSamples : samples > 0 ? samples : 0.0f;
    return {start, cell, static_cast<int>(limited), pixels};
  }

  DT_HD float at(int index, int sample) const {
    return start + static_cast<float>(index) * cell +
           (static_cast<float>(sample) + 0.5f) * cell / static_cast<float>(grid);
  }
};

// Bilinear sample between two neighbouring pixels; at the map's edge one pixel with weight 0 for the other. Samples
// more than a pixel outside of the map, and NaN, have weight 0.
struct RoiTap {
  int low, high;
  float low_weight, high_weight;
  bool inside;
};
DT_HD inline RoiTap roi_tap(float at, int pixels) {
  if (pixels < 1 || !(at >= -1.0f && at <= static_cast<float>(pixels))) return {0, 0, 0.0f, 0.0f, false};
  if (at <= 0) at = 0;
  const int low = static_cast<int>(at);
  if (low >= pixels - 1) return {pixels - 1, pixels - 1, 1.0f, 0.0f, true};
  const float part = at - static_cast<float>(low);
  return {low, low + 1, 1.0f - part, part, true};
}

// Factor of the sum over a cell's samples for their mean.
DT_HD inline float roi_factor(const RoiAxis& rows, const RoiAxis& columns) {
  const float samples = static_cast<float>(rows.grid) * static_cast<float>(columns.grid);
  return samples > 1 ? 1.0f / samples : 1.0f;
}

// FPN level before clamping; the first for zero area.
DT_HD inline int roi_level(const float* roi, float canonical_size, int canonical_level, float epsilon, float extra,
                           int lowest, int highest) {
  const float area = (roi[2] - roi[0] + extra) * (roi[3] - roi[1] + extra);
  const float level = floorf(static_cast<float>(canonical_level) + log2f(sqrtf(area) / canonical_size) + epsilon);
  if (!(level > static_cast<float>(lowest))) return 0;
  return (level < static_cast<float>(highest) ? static_cast<int>(level) : highest) - lowest;
}

}  // namespace dtrain
