// How an evaluation went on each image, and on which images it went worst and best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/coco/match.h"

namespace dtrain::mask_rcnn {

struct ImageOutcome {
  size_t image = 0;  // its index in the ground truth
  // Objects that were found, that were not, and detections of what is not there.
  int64_t hits = 0, misses = 0, false_alarms = 0;

  int64_t errors() const { return misses + false_alarms; }
  // 2 hits / (2 hits + misses + false alarms).
  double f1() const { return 2 * static_cast<double>(hits) / static_cast<double>(2 * hits + errors()); }
};

// By the first IoU threshold and the first range of areas, over the detections that have at least this score. Images
// with neither objects nor detections that count are left out. The worst one is first: F1 ascends, and where it is the
// same, fewer errors and then more hits come later.
std::vector<ImageOutcome> ranked_images(std::span<const std::vector<data::coco::Match>> matches, double least_score);

// At most `most` of either end, none of them twice.
struct Extremes {
  std::vector<ImageOutcome> worst{}, best{};  // the most extreme one first
};
Extremes extremes_of(std::span<const ImageOutcome> ranked, size_t most);

}  // namespace dtrain::mask_rcnn
