// What a program that shows images to detectors knows of one, whichever it is.
#pragma once

#include <vector>

#include "data/coco/annotations.h"
#include "data/coco/results.h"
#include "data/image.h"

namespace dtrain::detection {

// A detector with its weights, which is shown one image at a time, by one thread at a time.
class ImageDetector {
 public:
  virtual ~ImageDetector() = default;

  // Of the classes from 1 on, in their order; each has a name.
  virtual const std::vector<data::coco::Category>& categories() const = 0;
  // Whether images are turned by their EXIF orientation before they are shown to it.
  virtual data::Orientation orientation() const { return data::Orientation::ignore; }
  // By descending score, in pixels of the image, which may have any size; with masks where the detector makes some.
  virtual std::vector<data::coco::Detection> objects_in(const data::Image& image) = 0;
};

}  // namespace dtrain::detection
