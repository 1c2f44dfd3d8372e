// Where RoIAlign takes its samples, one axis at a time; shared by the arms and by what crops as it does.
#pragma once

#include <cmath>
#include <cstdint>

#include "libdtrain/core/host_device.h"

namespace dtrain {

// One axis of a region: `cells` of them, each with `grid` samples, over `pixels` of a map.
struct RoiAxis {
  float start, cell;  // of the region, and the extent of one cell, both in pixels of the map
  int grid, pixels;

  // More samples than this in a cell cannot be told apart; a region without end must not have endless ones.
  static constexpr float kMostSamples = 4096;

  // The region from `low` to `high` in pixels of the image, seen on a map with `scale` pixels to each of those.
  DT_HD static RoiAxis of(float low, float high, float scale, int cells, int sampling_ratio, bool aligned, int pixels) {
    const float offset = aligned ? 0.5f : 0.0f;
    const float start = low * scale - offset, end = high * scale - offset;
    float extent = end - start;
    if (!aligned && !(extent > 1.0f)) extent = 1.0f;
    const float cell = extent / static_cast<float>(cells);
    if (sampling_ratio > 0) return {start, cell, sampling_ratio, pixels};
    const float samples = ceilf(cell);  // none in a region turned inside out, nor in one that is not a number
    const float limited = samples > kMostSamples ? kMostSamples : samples > 0 ? samples : 0.0f;
    return {start, cell, static_cast<int>(limited), pixels};
  }

  DT_HD float at(int index, int sample) const {
    return start + static_cast<float>(index) * cell +
           (static_cast<float>(sample) + 0.5f) * cell / static_cast<float>(grid);
  }
};

// A sample between two neighbouring pixels, one pixel and weight 0 beside the map's edge. A sample that is further than
// a pixel from the map, or is not a number, has no weight.
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

// What the average over the samples of a cell multiplies their sum by.
DT_HD inline float roi_factor(const RoiAxis& rows, const RoiAxis& columns) {
  const float samples = static_cast<float>(rows.grid) * static_cast<float>(columns.grid);
  return samples > 1 ? 1.0f / samples : 1.0f;
}

// The map of a region, before it is limited to those there are; that without area has the first.
DT_HD inline int roi_level(const float* roi, float canonical_size, int canonical_level, float epsilon, float extra,
                           int lowest, int highest) {
  const float area = (roi[2] - roi[0] + extra) * (roi[3] - roi[1] + extra);
  const float level = floorf(static_cast<float>(canonical_level) + log2f(sqrtf(area) / canonical_size) + epsilon);
  if (!(level > static_cast<float>(lowest))) return 0;
  return (level < static_cast<float>(highest) ? static_cast<int>(level) : highest) - lowest;
}

}  // namespace dtrain
