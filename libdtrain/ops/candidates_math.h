// Per-box and per-score arithmetic of candidates.h, shared by the CPU and CUDA kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtrain/core/host_device.h"

namespace dtrain {

constexpr float kNoScore = -INFINITY;

// NaN sides count as small.
DT_HD inline bool is_small(const float* box, float min_side) {
  const float w = box[2] - box[0], h = box[3] - box[1];
  return !(w > 0 && h > 0 && w >= min_side && h >= min_side);
}

// Score of a region for class `kind`; 0 is background.
DT_HD inline float class_score(float probability, int64_t kind, float threshold) {
  return kind != 0 && probability > threshold ? probability : kNoScore;
}

// Element `i` of the p * c scores of an image with `count` regions.
DT_HD inline float candidate_score(float probability, int64_t i, int64_t c, int32_t count, float threshold) {
  return i / c < count ? class_score(probability, i % c, threshold) : kNoScore;
}

DT_HD inline int32_t class_of(int32_t index, int32_t c) { return index < 0 ? -1 : index % c; }

}  // namespace dtrain
