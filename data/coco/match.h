// Matching of detections with the ground truth of an image, per IoU threshold and area range.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/coco/overlap.h"
#include "dtrain/data/coco/evaluate.h"

namespace dtrain::data::coco {

// Ground truth for matching, with either a box or a mask.
struct Truth {
  uint32_t category = 0;
  bool crowd = false;
  bool never_matches = false;  // matches a detection, which still counts as a false positive
  double area = 0;
  BoundingBox box{};
  Shape shape{};
};

// Detection for matching.
struct Found {
  uint32_t category = 0;
  double score = 0;
  double area = 0;
  BoundingBox box{};
  Shape shape{};
};

struct MatchOptions {
  bool shapes = false;                       // compares masks instead of boxes
  std::span<const double> iou_thresholds{};  // at most 64
  std::span<const AreaRange> areas{};
  size_t max_detections = 100;  // per category
};

// Returns one Match per category present in the image, in ascending order. Greedy matching as in COCO: detections by
// descending score, in the given order for equal scores, each to the remaining ground truth of largest IoU, the last
// one for equal IoU. Crowds and ground truths outside the area range are ignored: they are matched only if nothing else
// fits, and their detections are ignored. Crowds can match repeatedly. Unmatched detections outside the area range are
// ignored, too.
std::vector<Match> match(std::span<const Truth> truths, std::span<const Found> found, const MatchOptions& options);

}  // namespace dtrain::data::coco
