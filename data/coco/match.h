// The detections of an image beside its ground truth: which found something, at which thresholds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/coco/overlap.h"

namespace dtrain::data::coco {

// Objects of this area, in pixels, both ends included.
struct AreaRange {
  std::string name{};
  double least = 0, most = 1e10;
};

// Ground truth as it is compared. Either the box or the shape is.
struct Truth {
  uint32_t category = 0;
  bool crowd = false;
  bool never_matches = false;  // it takes the detection that finds it, which is wrong all the same
  double area = 0;
  Box box{};
  Shape shape{};
};

// A detection as it is compared.
struct Found {
  uint32_t category = 0;
  double score = 0;
  double area = 0;
  Box box{};
  Shape shape{};
};

struct MatchOptions {
  bool shapes = false;                       // compares shapes instead of boxes
  std::span<const double> iou_thresholds{};  // at most 64
  std::span<const AreaRange> areas{};
  size_t max_detections = 100;  // of a category
};

// The objects of one category in one image. Thresholds are bits, the first one the lowest.
struct Match {
  // Of a detection, for one range of areas. What is ignored is neither right nor wrong.
  struct Bits {
    uint64_t matched = 0, ignored = 0;
  };

  uint32_t category = 0;
  std::vector<double> scores{};    // in descending order
  std::vector<Bits> bits{};        // [areas * detections]
  std::vector<uint32_t> truths{};  // [areas] those that are not ignored
};

// One for each category that is found or true in the image, in ascending order. By the rules of COCO: detections choose
// in the order of their scores, equal ones in the order given, each the truth of the largest overlap that is left, the
// last of several. Crowds and truths of other areas are ignored, are chosen only where nothing else fits, and ignore
// whatever chooses them; crowds may be chosen again. What finds nothing and is of another area is ignored, too.
std::vector<Match> match(std::span<const Truth> truths, std::span<const Found> found, const MatchOptions& options);

}  // namespace dtrain::data::coco
