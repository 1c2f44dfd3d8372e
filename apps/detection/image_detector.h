// Interface of detectors for inference on single images.
#pragma once

#include <vector>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/coco/results.h"
#include "dtrain/data/image.h"

namespace dtrain::detection {

// A detector with weights, for one image at a time. Not thread-safe.
class ImageDetector {
 public:
  virtual ~ImageDetector() = default;

  // Categories of the classes from 1 on; each has a name.
  virtual const std::vector<data::coco::Category>& categories() const = 0;
  // Whether the EXIF orientation is applied before inference.
  virtual data::Orientation orientation() const { return data::Orientation::ignore; }
  // Detections by descending score, in pixels of the image, which may have any size; with masks if the detector
  // predicts them.
  virtual std::vector<data::coco::Detection> objects_in(const data::Image& image) = 0;
};

}  // namespace dtrain::detection
