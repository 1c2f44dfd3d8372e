// Per-image results of an evaluation, and ranking of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/coco/match.h"

namespace dtrain::mask_rcnn {

struct ImageOutcome {
  size_t image = 0;  // index in the ground truth
  // True positives, false negatives and false positives.
  int64_t hits = 0, misses = 0, false_alarms = 0;

  int64_t errors() const { return misses + false_alarms; }
  // F1: 2 TP / (2 TP + FN + FP).
  double f1() const { return 2 * static_cast<double>(hits) / static_cast<double>(2 * hits + errors()); }
};

// Counts at the first IoU threshold and the first area range, over detections with at least this score. Skips images
// without objects and without such detections. Sorted from worst to best: by ascending F1, then descending errors, then
// ascending true positives.
std::vector<ImageOutcome> ranked_images(std::span<const std::vector<data::coco::Match>> matches, double least_score);

// At most `most` worst and best images, without duplicates.
struct Extremes {
  std::vector<ImageOutcome> worst{}, best{};  // the most extreme one first
};
Extremes extremes_of(std::span<const ImageOutcome> ranked, size_t most);

}  // namespace dtrain::mask_rcnn
